"""Workloads (data set, model, task, goals, and what is tuned): the book's and a reader's own."""
