"""The `jointpmf` command: text typed in a shell comes in; files and what is printed go out.

Every command turns its arguments into settings, makes one library call and prints the result.
Begin with `main.py`, which lists the commands; each has a function in `fitting.py`, `asking.py`,
`pages.py` or `identifying.py`.
"""
