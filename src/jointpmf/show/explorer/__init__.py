"""The explorer: a model as one HTML page that answers questions in the browser.

A JointPMF comes in; a page that fetches nothing goes out. Begin with page.py,
then assets/start.js; assets/model.js computes the probabilities.
"""
