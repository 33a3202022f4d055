"""What figures ask of the frames and arrays that they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd


def require(frame: pd.DataFrame, words: Sequence[str], numbers: Sequence[str], what: str) -> pd.DataFrame:
    """
    :param words: columns that must be there.
    :param numbers: columns that must be there and hold numbers; infinities are made NaN.
    :param what: the frame's name in errors.
    :return: a copy.
    """
    missing = [name for name in (*words, *numbers) if name not in frame.columns]
    if missing:
        raise ValueError(f"{what} must have the columns {', '.join(missing)}; it has {', '.join(map(str, frame))}")
    copy = frame.copy()
    for name in numbers:
        try:
            values = pd.to_numeric(frame[name]).to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ValueError(f"column {name} of {what} must hold numbers: {error}") from error
        copy[name] = np.where(np.isfinite(values), values, np.nan)
    return copy


def require_arrays(arrays: Mapping[str, np.ndarray], names: Sequence[str], what: str) -> None:
    """
    :param names: arrays that must be there.
    """
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ValueError(f"{what} must have the arrays {', '.join(missing)}; it has {', '.join(arrays)}")


def labels(frame: pd.DataFrame) -> dict[str, str]:
    """
    :param frame: columns variant and label.
    :return: the label of each variant: the first that is not empty, or else the variant's name.
    """
    named = frame.dropna(subset=["label"]).drop_duplicates("variant").set_index("variant")["label"]
    return {name: str(named.get(name, name)) for name in frame["variant"].unique()}
