"""Training: phases of epochs, run by a trainer that can be killed and resumed."""

from hilap.training.data import TrainingData
from hilap.training.phases import plan
from hilap.training.trainer import Phase, Trainer

__all__ = ["Phase", "Trainer", "TrainingData", "plan"]
