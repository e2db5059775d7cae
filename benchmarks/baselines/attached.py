"""Inputs as the baselines know them: complete, and there from the beginning."""

from anabranch.kernels.merge.sides import Sides
from anabranch.model.time import BEGINNING


def attached(inputs: int) -> Sides:
    """This many complete inputs, numbered from 0."""
    sides = Sides.of_capacity(inputs)
    for number in range(inputs):
        sides.attach(number, BEGINNING, number + 1, complete=True, stable=BEGINNING)
    return sides
