"""What runs operators: threads, queues and the outside world, which kernels know nothing of."""
