------------------------------- MODULE Broken -------------------------------
(***************************************************************************)
(* Rules broken on purpose: what TLC finds when one of these stands in the *)
(* place of a definition of Controller.tla or Partition.tla.  An invariant *)
(* that no broken rule violates would prove nothing.                       *)
(***************************************************************************)
EXTENDS Partition

\* MeetsMinIsr: the ELR is kept beside an ISR that meets min ISR.
NeverMet(isr, around) == FALSE

\* Registered: an unclean shutdown does not leave ISR and ELR.
AsClean(p, around, b, clean) == Fenced(p, around, b)

\* MayAdvance: the high watermark advances under min ISR, as before Kafka 3.7.
Always(p, min) == TRUE

\* EndsAfterRegistration: what the leader knew of the broker's last incarnation counts on, as before KIP-903.
AsBefore(b) == ends

\* CaughtUp: the leader lets in whoever has fetched at all.
HasFetched(b) == ends[b] # Unknown

\* ProposedIsr: by the KIP's rules, too, the ELR is computed before the election, and stays beside the elected leader.
BeforeTheElection(want, isr) == want.isr

\* Enough: balanced takes the best of whatever answers came.
AnyAnswer(answered) == answered # {}

\* LeftBehind: an unclean recovery forgets LastKnownELR, as Kafka's unused code for it does.
Forgotten(want, sets) == {}

\* Best: the logs are heard, and not looked at.
Anybody(S) == S
=============================================================================
