"""Pictures of fits and models, the public `jointpmf.plots`; the only folder that knows matplotlib.

A Solution, JointPMF, MarginalSet, RankCurve or errors come in; each function draws on one Axes and
returns it. Begin with curves.py: the other files are built like it, on canvas.py, which imports
matplotlib (extra `plots`) when something is drawn.

All pictures share a style that ends with them: the user's own settings stay as they are, and fonts
and the colours of text and background are taken from them. Curves have the colours of Okabe and
Ito, which people with any kind of colour vision can tell apart; equal steps of a heat map look
equally large.
"""

from jointpmf.show.plots import canvas
from jointpmf.show.plots.canvas import style
from jointpmf.show.plots.checks import calibration, marginal_fit
from jointpmf.show.plots.curves import convergence, error_by_rank, rank_curve
from jointpmf.show.plots.heat_maps import dependencies, factors
from jointpmf.show.plots.profile_panels import profiles
from jointpmf.show.plots.trait_map import traits

BLUE, GREY, COLOURS = canvas.BLUE, canvas.GREY, canvas.COLOURS
MARKERS, HEAT = canvas.MARKERS, canvas.HEAT

__all__ = [
    "BLUE",
    "COLOURS",
    "GREY",
    "HEAT",
    "MARKERS",
    "calibration",
    "convergence",
    "dependencies",
    "error_by_rank",
    "factors",
    "marginal_fit",
    "profiles",
    "rank_curve",
    "style",
    "traits",
]
