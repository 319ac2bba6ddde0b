"""Settings that name a model."""

from errand.text.translation import tr

# By name: what is shown for an empty one, and whether the default model is used then.
MODEL_SETTINGS = {"default_model": (tr("Automatic"), True), "title_model": (tr("None"), False)}
