"""What a person looks at: notebooks, plots, the report and the explorer.

Models, fits and judgements come in; HTML, SVG, matplotlib Axes or one page in a file go out.
Begin with notebook.py, which shows each result in a few lines, on the pieces of html.py, charts.py
and text.py.
"""
