"""What is measured: cells, and studies, which are sets of them."""
