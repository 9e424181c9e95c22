--------------------------- MODULE PartitionTrace ---------------------------
(***************************************************************************)
(* Trace validation of Partition.tla: is a recorded life of a partition    *)
(* with logs (kelr/simulation) a behavior of the specification?  tests/tla *)
(* writes the module History with Lives: of each, the states in order, and *)
(* before each but the first the move that led there.                      *)
(*                                                                         *)
(* A life is accepted when some behavior shows all of its states.  A move  *)
(* is one action; answers to the Unclean Recovery Manager, and what it     *)
(* elects by them, come with it.  A fetch that truncates is two here: in   *)
(* kelr's one it gets the leader's records as well.                        *)
(***************************************************************************)
EXTENDS Partition, History, TLC

VARIABLES
  life, \* which one
  at,   \* the state of it that was shown last
  moved \* the move to the next one has happened

Following == Lives[life][at + 1]

Shown(state) ==
  /\ partition = state.partition /\ broker = state.broker /\ log = state.log /\ committed = state.committed

Move(name, b) ==
  CASE name \in {"produce", "produce acks=1"} -> Produce
    [] name = "fetch" -> Fetch(b) \/ UNCHANGED vars
    [] name = "crash" -> UncleanShutdown(b, Len(log[b]))
    [] name = "lose power" -> \E n \in 0..Len(log[b]) : UncleanShutdown(b, n)
    [] name = "register" -> Register(b)
    [] name = "fence" -> Fence(b)
    [] name = "unfence" -> Unfence(b)
    [] name \in {"add", "drop"} -> (\E isr \in SUBSET Brokers : AlterPartition(isr)) \/ UNCHANGED vars
    [] name = "elect preferred" -> Elect("PREFERRED") \/ UNCHANGED vars
    [] name = "elect unclean" -> Elect("UNCLEAN") \/ UNCHANGED vars
    [] name = "fail over" -> FailOver \/ UNCHANGED vars
    [] name = "min isr" -> MinIsrWrite(b) \/ UNCHANGED vars
    [] name \in {"elr off", "elr on"} -> ElrFeature
    \* Disks are flushed, time passes, an answer arrives.
    [] OTHER -> UNCHANGED vars

TraceInit == Init /\ life \in DOMAIN Lives /\ at = 1 /\ moved = FALSE

TraceNext ==
  \/ /\ at < Len(Lives[life]) /\ ~moved
     /\ Move(Following.move, Following.of)
     /\ moved' = TRUE /\ UNCHANGED <<life, at>>
  \/ /\ (\E b \in Brokers : Answer(b)) \/ Recover
     /\ UNCHANGED <<life, at, moved>>
  \/ /\ moved /\ Following.move = "fetch" /\ Fetch(Following.of)
     /\ UNCHANGED <<life, at, moved>>
  \/ /\ moved /\ Shown(Following)
     /\ at' = at + 1 /\ moved' = FALSE /\ UNCHANGED <<life, vars>>
     /\ PrintT(<<"shown", life, at + 1>>)

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, life, at, moved>>
=============================================================================
