"""Reads that are sent ahead: what a loop will look at is on its way while it does other things."""

from typing import Any

from anabranch.model.compiled import instruction

_READ, _KEEP, _DATA = 0, 3, 1


def _prefetch(_typing: Any, array: Any, item: Any) -> Any:
    from llvmlite import ir
    from numba import types

    signature = types.void(array, types.int64)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        whole = context.make_array(kind)(context, builder, arguments[0])
        byte = ir.IntType(8).as_pointer()
        stride = builder.extract_value(whole.strides, 0)
        address = builder.gep(builder.bitcast(whole.data, byte), [builder.mul(arguments[1], stride)])
        number = ir.IntType(32)
        fetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        builder.call(fetch, [address, number(_READ), number(_KEEP), number(_DATA)])
        return context.get_dummy_value()

    return signature, build


@instruction(_prefetch)
def ahead(array: Any, item: Any) -> None:
    """Ask for the cache line of an item of a contiguous array; of a row, where the array has two dimensions.

    Beyond the array nothing happens: a read ahead never fails.
    """
