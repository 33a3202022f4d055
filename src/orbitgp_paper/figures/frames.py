"""Frames as figures want them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd


def finite(frame: pd.DataFrame, numbers: Sequence[str]) -> pd.DataFrame:
    """
    :return: a copy, in which what is not finite in these columns is NaN.
    """
    copy = frame.copy()
    for name in numbers:
        values = pd.to_numeric(frame[name]).to_numpy(dtype=np.float64, na_value=np.nan)
        copy[name] = np.where(np.isfinite(values), values, np.nan)
    return copy


def labels(frame: pd.DataFrame) -> dict[str, str]:
    """
    :param frame: columns variant and label.
    :return: the label of each variant: the first that is not empty, or else the variant's name.
    """
    named = frame.dropna(subset=["label"]).drop_duplicates("variant").set_index("variant")["label"]
    return {name: str(named.get(name, name)) for name in frame["variant"].unique()}
