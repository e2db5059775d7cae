"""Convert a stream between formats and dialects.

Formats: jsonl, text (the notation), parquet, arrow; csv is read and not written. Dialects of lines: modify
(a/m/f), open-close, cedr, external-cti, change-rows. What a dialect cannot express is an
error that says so; nothing is left out.

examples:
  anabranch convert feed.jsonl feed.parquet
  anabranch convert feed.parquet - --to text
  anabranch convert trades.jsonl trades.txt --from-dialect change-rows
  anabranch convert both.jsonl east.jsonl --input east
  anabranch convert merged merged.parquet     the folder that anabranch run has written, as one file
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from anabranch.cli.arguments import DIALECTS, FORMATS, READ_FORMATS, add_json, check_elements

if TYPE_CHECKING:
    from anabranch.model.batch import Batch


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``convert``."""
    parser.add_argument(
        "source", metavar="IN", help="a recorded stream, the folder of a run, or - for standard input"
    )
    parser.add_argument("target", metavar="OUT", help="the file to write, or - for standard output")
    parser.add_argument("--from", dest="from_format", choices=READ_FORMATS, help="format of IN")
    parser.add_argument("--to", dest="to_format", choices=FORMATS, help="format of OUT")
    parser.add_argument("--from-dialect", choices=DIALECTS, help="dialect of IN's lines")
    parser.add_argument("--to-dialect", choices=DIALECTS, help="dialect of OUT's lines")
    parser.add_argument("--input", metavar="NAME", help="only what this input said, without its name")
    parser.add_argument("--text", action="store_true", help="write values that JSON has no type for as text")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Write the stream anew."""
    import json

    from anabranch.cli.progress import progress
    from anabranch.connectors.files.formats import written_format
    from anabranch.connectors.files.reading import Source
    from anabranch.connectors.files.writing import Target

    written_format(options.target, options.to_format, options.to_dialect)
    check_elements(options.source, options.from_format, options.from_dialect)
    source = Source.named(options.source, options.from_format, options.from_dialect)
    target = Target.named(
        options.target,
        options.to_format,
        options.to_dialect,
        as_text=options.text,
        clock=source.clock(),
    )
    with progress(f"converting {options.source}") as done:
        batches = source.batches(progress=done)
        count = target.write(_only(batches, options.input) if options.input else batches)
    if options.json:
        answer = json.dumps({"elements": count, "target": options.target})
        print(answer, file=sys.stderr if options.target == "-" else sys.stdout)
    else:
        print(f"{options.target}: {count} elements", file=sys.stderr)
    return 0


def _only(batches: Iterator[Batch], name: str) -> Iterator[Batch]:
    """What one input said, as long as it was attached once: after a restart it begins a stream of its own."""
    from anabranch.model.batch import Kind

    found: set[str] = set()
    left = False
    for batch in batches:
        found |= set(batch.inputs)
        part = batch.split().get(name)
        if part is None:
            continue
        for kind in part.kind[(part.kind >= Kind.ATTACH) | left]:
            if left:
                raise ValueError(f"{name!r} speaks again after it was detached: that is another stream")
            left = kind == Kind.DETACH
        yield part.take(part.kind <= Kind.STABLE)
    if name not in found:
        raise ValueError(f"no input is called {name!r}; there are {', '.join(sorted(found)) or 'none'}")
