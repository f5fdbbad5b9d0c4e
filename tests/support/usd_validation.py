"""USD's validators, which every stage that Nimbus writes must pass."""
# The stubs of pxr say that most calls return None.
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false

from __future__ import annotations

from typing import Any


def validation_errors(stage: Any) -> list[str]:
    """Run USD's own validators; return their errors."""
    from pxr import UsdValidation

    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    assert len(validators) > 20
    return [str(error.GetMessage()) for error in UsdValidation.ValidationContext(validators).Validate(stage)]
