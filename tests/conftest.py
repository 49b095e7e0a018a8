"""What has to be set before any test imports scipy."""

import os

# Without it scikit-learn skips its check of array API input; of other code it changes nothing.
os.environ["SCIPY_ARRAY_API"] = "1"
