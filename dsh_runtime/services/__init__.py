"""Services that the host itself brings."""
