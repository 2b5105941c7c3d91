"""Texts as numbers of their tokens, for the layer Tokens, and back.

    from caffe.text import open_tokenizer
    tokenizer = open_tokenizer("shakespeare")   # the folder that `caffe data import-text` made
    numbers = tokenizer.encode("To be")         # NumPy array of int64
    tokenizer.decode(numbers)                   # "To be"
"""
from .folder import import_text
from .tokenizers import make_tokenizer, open_tokenizer

__all__ = ["import_text", "make_tokenizer", "open_tokenizer"]
