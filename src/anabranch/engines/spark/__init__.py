"""Plans as Structured Streaming queries. `anabranch.spark` has the names people use.

Rows become parcels (`packing`), parcels meet in a shard of a stateful operator (`processor`), where kernels
hear them in order (`shard`) over a state that is a snapshot and what was heard since (`journal`); what comes
out is rows again (`unpacking`).
"""
