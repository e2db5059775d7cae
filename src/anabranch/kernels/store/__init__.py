"""What kernels share: where state is kept, and how it is written."""
