"""How things are computed: chunks, triangular algebra, precision, fused warps. Nothing here is for users."""
