"""Never run: what a type checker must refuse.  A call that it lets pass leaves an unused ignore, which is an error."""

import shoal

shoal.anonymize("people.csv", quasi_identifiers=["age"], k=5, l=2)
shoal.anonymize("people.csv", quasi_identifier=["age"], k=5)  # type: ignore[call-arg]
shoal.anonymize("people.csv", quasi_identifiers=["age"], k="five")  # type: ignore[arg-type]
shoal.anonymize("people.csv", quasi_identifiers=["age"], k=5, effort=None)  # type: ignore[arg-type]
shoal.audit("people.csv", quasi_identifiers=["age"], distinct="two")  # type: ignore[call-arg]
shoal.explore("people.csv", quasi_identifiers=["age"], k=[3, 5], hierarchy={})  # type: ignore[call-arg]
shoal.nonsense()  # type: ignore[attr-defined]
shoal.KAnonymity("5")  # type: ignore[arg-type]
