"""The reference of the Python package: pages of the book made of signatures, docstrings and examples."""
