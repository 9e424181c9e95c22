-------------------------- MODULE ControllerTrace ---------------------------
(***************************************************************************)
(* Trace validation of Controller.tla: is every step of a recorded history *)
(* one that the specification allows?  tests/tla writes the module History *)
(* with what kelr's state machine, Apache's classes or a metadata log did  *)
(* to a partition.  Histories share most steps; each is looked at once.    *)
(*                                                                         *)
(*   Partitions  partitions on record, as Controller.tla has them          *)
(*   Arounds     circumstances                                             *)
(*   Steps       <<event, partition before, circumstances, brokers, ISR,   *)
(*               replicas, removing replicas, partition after>>            *)
(***************************************************************************)
EXTENDS Controller, History

VARIABLE step

Event == Steps[step][1]
Before == Partitions[Steps[step][2]]
Around == Arounds[Steps[step][3]]
Brokers == Steps[step][4]
Isr == Steps[step][5]
NewReplicas == Steps[step][6]
NewRemoving == Steps[step][7]
After == Partitions[Steps[step][8]]

\* Two records of one event are made from the same partition; the second one's fields are laid over the first's.
\* (PartitionRegistration.merge)
OnTop(first, second) ==
  [f \in DOMAIN first |->
     IF f = "epoch" THEN first.epoch + second.epoch - Before.epoch
     ELSE IF second[f] # Before[f] \/ (f = "leader" /\ second.epoch > Before.epoch) THEN second[f] ELSE first[f]]

\* What an event may make of a partition.  `b`: the broker that it is about, where it is about one.
Outcomes(event, b) ==
  LET leaves(uncleanly) == Leaves(Before, Around, b, uncleanly)
      \* The index of ELR members keeps what a min ISR write cleared: the partition is looked at, or once more.
      lookedAtAgain(p, uncleanly) == {p, leaves(uncleanly), OnTop(p, leaves(uncleanly))}
      registered(clean) == Registered(Before, Around, b, clean)
      assigned == DirectoryAssigned(Before, Around)
  IN CASE event = "nothing" -> {Before}
       [] event = "fenced" -> {Fenced(Before, Around, b)}
       \* A broker that leads nothing any more, or asked before, is left as it is.
       [] event = "controlled shutdown" -> {Before, Fenced(Before, Around, b)}
       [] event = "registered" -> {registered(TRUE)}
       [] event = "registered uncleanly" ->
            IF Around.rules.elr THEN lookedAtAgain(registered(FALSE), {b}) ELSE {registered(FALSE)}
       [] event = "unfenced" -> {Unfenced(Before, Around, b)}
       [] event = "unregistered" -> lookedAtAgain(Unregistered(Before, Around, b), {})
       [] event = "directory failed" -> {DirectoryFailed(Before, Around, b)}
       \* A replica in a directory that is offline leaves the ISR in a second record.
       [] event = "directory assigned" -> {assigned}
       [] event = "directory assigned offline" -> {OnTop(assigned, leaves({}))}
       [] event = "ISR altered" -> {IsrAltered(Before, Around, Isr)}
       [] event = "preferred election" -> {LeaderElected(Before, Around, "PREFERRED")}
       [] event = "unclean election" -> {LeaderElected(Before, Around, "UNCLEAN")}
       [] event = "recovered" -> {Recovered(Before, Around, b)}
       [] event = "reassigned" -> {Reassigned(Before, Around, NewReplicas, NewRemoving)}
       [] event = "cancelled" -> {Cancelled(Before, Around)}
       \* The value that a topic has already is not written again.
       [] event = "min ISR written" -> {Before, MinIsrWritten(Before, Around)}

\* A record of a metadata log does not tell its event: some event has to make it, of one of the brokers that other records
\* of its batch are about, or of a leader or an operator.
OfBroker == {"fenced", "controlled shutdown", "registered", "registered uncleanly", "unfenced", "unregistered"}
OfOthers == {"ISR altered", "preferred election", "unclean election", "reassigned", "cancelled", "min ISR written",
             "directory assigned"}

Accepted ==
  IF Event = "of a record"
  THEN \/ \E event \in OfBroker, b \in Brokers : After \in Outcomes(event, b)
       \/ \E event \in OfOthers : After \in Outcomes(event, NoLeader)
  ELSE \E b \in Brokers : After \in Outcomes(Event, b)

Init == step \in DOMAIN Steps
Next == UNCHANGED step
Spec == Init /\ [][Next]_step
=============================================================================
