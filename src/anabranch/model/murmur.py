"""MurmurHash3 x64 128 (Appleby, public domain), compiled, over byte ranges of Arrow buffers.

Not cryptographic: equal inputs have equal hashes, and two different ones collide by chance only about once
in 2^128 pairs. Chosen for being published, small and the same everywhere; the tests compare it with the
``mmh3`` package.
"""

from typing import Any

import numpy as np

from anabranch.model.compiled import inlined, instruction

C1 = np.uint64(0x87C37B91114253D5)
C2 = np.uint64(0x4CF5AD432745937F)


def _load(_typing: Any, data: Any, position: Any) -> Any:
    from llvmlite import ir
    from numba import types

    signature = types.uint64(data, types.int64)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        word = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return signature, build


@instruction(_load)
def _word(data: Any, position: Any) -> Any:
    """Eight bytes at any position, little-endian; the caller keeps inside the buffer."""
    return data[position : position + 8].view("<u8")[0]


def _funnel_shift(_typing: Any, word: Any, bits: Any) -> Any:
    """Of a product shifted both ways LLVM makes two products; 100 bytes take 21 ns to hash instead of 17."""
    from llvmlite import ir
    from numba import types

    signature = types.uint64(types.uint64, types.uint64)

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word, bits = arguments
        funnel_shift = builder.module.declare_intrinsic(
            "llvm.fshl", [word.type], ir.FunctionType(word.type, [word.type] * 3)
        )
        return builder.call(funnel_shift, [word, word, bits])

    return signature, build


@instruction(_funnel_shift)
def _rotate(word: Any, bits: int) -> Any:
    """The word with its bits moved left in a circle."""
    return word << np.uint64(bits) | word >> np.uint64(64 - bits)


@inlined
def mix(word: Any) -> Any:
    """A bijection of 64-bit words in which every input bit moves every output bit (murmur's fmix64)."""
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xFF51AFD7ED558CCD)
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


@inlined
def finish(low: Any, high: Any) -> tuple[Any, Any]:
    """Both words, each depending on all bits of both."""
    low += high
    high += low
    low = mix(low)
    high = mix(high)
    low += high
    return low, high + low


@inlined
def _last(data: Any, end: int, count: int) -> Any:
    """The ``count`` bytes before ``end``, at most seven, as a word; what is read stays inside the buffer."""
    if end >= 8:
        return _word(data, end - 8) >> np.uint64(8 * (7 - count)) >> np.uint64(8)
    word = np.uint64(0)
    for i in range(count):
        word |= np.uint64(data[end - count + i]) << np.uint64(8 * i)
    return word


@inlined
def murmur(data: Any, begin: int, end: int, seed: int) -> tuple[Any, Any]:
    """The 128-bit hash of ``data[begin:end]`` as a low and a high word."""
    low = high = np.uint64(seed)
    position = begin
    while position + 16 <= end:
        first = _rotate(_word(data, position) * C1, 31) * C2
        low = (_rotate(low ^ first, 27) + high) * np.uint64(5) + np.uint64(0x52DCE729)
        second = _rotate(_word(data, position + 8) * C2, 33) * C1
        high = (_rotate(high ^ second, 31) + low) * np.uint64(5) + np.uint64(0x38495AB5)
        position += 16
    rest = end - position
    if rest >= 8:
        first, second = _word(data, position), _last(data, end, rest - 8)
    else:
        first, second = _last(data, end, rest), np.uint64(0)
    high ^= _rotate(second * C2, 33) * C1
    low ^= _rotate(first * C1, 31) * C2
    length = np.uint64(end - begin)
    return finish(low ^ length, high ^ length)
