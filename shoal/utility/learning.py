"""What a classifier learns from a release (scikit-learn, extra ``learn``)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def learned(train: np.ndarray, test: np.ndarray, wanted: np.ndarray, truth: np.ndarray) -> dict[str, Any] | None:
    """Accuracy and area under the curve of logistic regression; None where the release shows one class only.

    train, test    float64[rows, features]; wanted, truth: the classes
    The area is that of the rarer class for two classes, the mean of one against the rest for more, None where it has no
    meaning; ``majority`` is the accuracy of always naming the most frequent class.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    if np.unique(wanted).size < 2:
        return None
    middle, scale = train.mean(axis=0), train.std(axis=0)
    varied = scale > 1e-9  # a column of stars varies by rounding alone and teaches nothing
    scale[~varied] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=300).fit((train - middle) / scale * varied, wanted)
    prepared = (test - middle) / scale * varied
    chances = model.predict_proba(prepared)
    classes, counts = np.unique(truth, return_counts=True)
    area = None
    if set(classes) == set(model.classes_):
        areas = [float(roc_auc_score(truth == c, chances[:, i])) for i, c in enumerate(model.classes_)]
        area = areas[1] if len(areas) == 2 else float(np.mean(areas))
    return {
        "accuracy": float((model.predict(prepared) == truth).mean()),
        "auc": area,
        "majority": float(counts.max() / truth.size),
        "method": "logistic regression",
    }
