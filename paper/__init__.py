"""The experiments of the paper that this library began with, one file per table or figure."""
