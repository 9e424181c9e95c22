----------------------------- MODULE Controller -----------------------------
(***************************************************************************)
(* What Kafka's controller makes of one partition: who is elected, and     *)
(* what becomes of ISR, ELR and LastKnownELR, event by event.              *)
(*                                                                         *)
(* Released Kafka (4.0 to 4.4) by PartitionChangeBuilder.build and         *)
(* ReplicationControlManager; the whole of KIP-966 by its text.  There are *)
(* no logs here: they are in Partition.tla.                                *)
(*                                                                         *)
(* p, a partition on record:                                               *)
(*   replicas           the assignment, a sequence                         *)
(*   adding, removing   of a reassignment under way                        *)
(*   isr, elr           sets of brokers                                    *)
(*   lastKnown          LastKnownELR: in released Kafka the last known     *)
(*                      leader, in the KIP the set of former members       *)
(*   leader             a broker, or NoLeader                              *)
(*   epoch              the leader epoch                                   *)
(* around, what the controller knows besides:                              *)
(*   electable          live brokers whose log directory is online         *)
(*   minIsr             the effective min.insync.replicas                  *)
(*   unclean            unclean.leader.election.enable                     *)
(*   rules              see the rule sets below                            *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, Sequences

CONSTANT NoLeader

(***************************************************************************)
(* Rule sets.  `kip`: the whole KIP, no release has it.  The others tell   *)
(* releases apart: since KAFKA-19522 a last known leader must be live,     *)
(* since pull request 20629 it is set once, until KAFKA-19975 every        *)
(* replica of a reassignment's target had to be in the ISR.                *)
(***************************************************************************)
Elr43 == [elr |-> TRUE, kip |-> FALSE, lastKnownMustBeLive |-> TRUE, lastKnownSetOnce |-> TRUE,
          everyTarget |-> FALSE, strategy |-> "none"]
Elr41 == [Elr43 EXCEPT !.everyTarget = TRUE]
Elr410 == [Elr41 EXCEPT !.lastKnownSetOnce = FALSE]
Elr40 == [Elr410 EXCEPT !.lastKnownMustBeLive = FALSE]
Kraft == [Elr43 EXCEPT !.elr = FALSE]
KipNone == [Elr43 EXCEPT !.kip = TRUE]
KipBalanced == [KipNone EXCEPT !.strategy = "balanced"]
KipAggressive == [KipNone EXCEPT !.strategy = "aggressive"]

Members(sequence) == {sequence[i] : i \in DOMAIN sequence}

\* The first of `replicas` that is in S; NoLeader where none is.
First(replicas, S) ==
  IF Members(replicas) \cap S = {} THEN NoLeader
  ELSE replicas[CHOOSE i \in DOMAIN replicas :
                  replicas[i] \in S /\ \A j \in 1..(i - 1) : replicas[j] \notin S]

-----------------------------------------------------------------------------
(* One run of the controller on a partition *)

\* The KIP: "When the proposed ISR is larger or equal to min ISR, the controller will update the ISR and empty the ELR."
MeetsMinIsr(isr, around) == Cardinality(isr) >= around.minIsr

\* What an event asks for: nothing.  Events change fields of it.
Nothing(p) ==
  [election |-> "ONLINE", replicas |-> p.replicas, adding |-> p.adding, removing |-> p.removing,
   isr |-> p.isr, uncleanly |-> {}, recovered |-> NoLeader]

\* A reassignment is completed by the first run that may.  (PartitionReassignmentReplicas.maybeCompleteReassignment)
Completed(want, around) ==
  LET isr == want.isr \ want.removing
      replicas == SelectSeq(want.replicas, LAMBDA b : b \notin want.removing)
      may == /\ want.adding \cup want.removing # {}
             /\ want.removing # {} => isr # {} /\ replicas # <<>>
             /\ (around.rules.everyTarget \/ Cardinality(want.adding) < Cardinality(want.removing))
                => Members(replicas) \subseteq isr
             /\ ~around.rules.everyTarget => want.adding \subseteq isr
             /\ around.rules.kip => Cardinality(isr) >= around.minIsr
  IN IF may THEN [want EXCEPT !.isr = isr, !.replicas = replicas, !.adding = {}, !.removing = {}] ELSE want

\* ELR and, for the KIP, LastKnownELR, before anybody is elected.  (maybePopulateTargetElr; KIP-966, "ELR update")
TargetSets(p, around, want) ==
  LET kept == IF around.rules.kip THEN Members(want.replicas) ELSE p.elr \cup p.isr \cup p.lastKnown
      elr == ((p.elr \cup p.isr) \ want.isr) \ want.uncleanly
      rest == ((p.elr \cup p.isr \cup p.lastKnown) \ want.isr) \ elr
  IN CASE ~around.rules.elr /\ around.rules.kip -> [elr |-> {}, lastKnown |-> {}]
       [] ~around.rules.elr -> [elr |-> p.elr, lastKnown |-> p.lastKnown]
       [] MeetsMinIsr(want.isr, around) -> [elr |-> {}, lastKnown |-> {}]
       [] OTHER -> [elr |-> elr \cap kept, lastKnown |-> rest \cap kept]

\* Who may lead cleanly: the live members of the ISR or, only while that is empty, of the ELR.  (isValidNewLeader)
Valid(isr, elr, around) == around.electable \cap (IF isr = {} THEN elr ELSE isr)

\* Released Kafka.  (canElectLastKnownLeader)
LastKnownLeaderMayLead(p, isr, elr, around) ==
  /\ around.rules.elr /\ ~around.rules.kip
  /\ isr = {} /\ elr = {} /\ Cardinality(p.lastKnown) = 1
  /\ around.rules.lastKnownMustBeLive => p.lastKnown \subseteq around.electable

\* Whom an election elects.  (electAnyLeader, electPreferredLeader)
Elected(p, around, want, elr) ==
  LET valid == Valid(want.isr, elr, around)
      live == First(want.replicas, around.electable)
      cleanly(b) == [leader |-> b, clean |-> TRUE]
      uncleanly(b) == [leader |-> b, clean |-> FALSE]
  IN CASE want.election = "PREFERRED" /\ want.replicas[1] \in valid -> cleanly(want.replicas[1])
       [] p.leader \in valid -> cleanly(p.leader)
       [] Members(want.replicas) \cap valid # {} -> cleanly(First(want.replicas, valid))
       [] LastKnownLeaderMayLead(p, want.isr, elr, around) -> uncleanly(CHOOSE b \in p.lastKnown : TRUE)
       [] ~around.rules.kip /\ want.election = "UNCLEAN" /\ live # NoLeader -> uncleanly(live)
       [] around.rules.kip /\ want.recovered \in around.electable -> uncleanly(want.recovered)
       [] OTHER -> cleanly(NoLeader)

\* Released Kafka's use of LastKnownELR.  (maybeUpdateLastKnownLeader, and its form before pull request 20629)
LastKnownLeader(p, around, leader, leaderWritten, isr) ==
  CASE ~around.rules.elr -> p.lastKnown
    [] around.rules.lastKnownSetOnce ->
         IF ~leaderWritten THEN p.lastKnown
         ELSE IF leader # NoLeader THEN {}
         ELSE IF p.lastKnown = {} THEN {p.leader} ELSE p.lastKnown
    [] OTHER ->
         IF isr = {} /\ p.isr # {} /\ p.lastKnown # {p.leader} THEN {p.leader}
         ELSE IF leader # NoLeader THEN {} ELSE p.lastKnown

\* The KIP's LastKnownELR after an unclean recovery: whoever was in one of the sets may still be complete.
LeftBehind(want, sets) == want.isr \cup sets.elr \cup sets.lastKnown

\* The ISR by which the KIP's sets are judged: that of the record, with whoever was elected in it.  Released Kafka
\* computes the ELR before it elects, and leaves the rest of it beside an ISR that min ISR has come down to.
ProposedIsr(want, isr) == isr

\* The partition after one run.  (PartitionChangeBuilder.build)
Run(p, around, asked) ==
  LET want == Completed(asked, around)
      sets == TargetSets(p, around, want)
      elected == Elected(p, around, want, sets.elr)
      leader == elected.leader
      moves == leader # p.leader
      uncleanly == moves /\ ~elected.clean
      fromElr == moves /\ ~uncleanly /\ leader \in sets.elr
      \* A record that drops replicas names the leader, too.
      leaderWritten == moves \/ ~(Members(p.replicas) \subseteq Members(want.replicas))
      isr == IF uncleanly \/ fromElr THEN {leader}
             \* Without ELR the last member stays in the ISR.
             ELSE IF ~around.rules.elr /\ want.isr = {} THEN p.isr ELSE want.isr
      emptied == \/ uncleanly \/ ~around.rules.elr
                 \/ around.rules.kip /\ MeetsMinIsr(ProposedIsr(want, isr), around)
      former == IF uncleanly THEN LeftBehind(want, sets) ELSE sets.lastKnown
      inMinIsr == ~around.rules.elr \/ MeetsMinIsr(ProposedIsr(want, isr), around)
  IN [replicas |-> want.replicas, adding |-> want.adding, removing |-> want.removing,
      isr |-> isr,
      elr |-> IF emptied THEN {} ELSE sets.elr \ (IF fromElr THEN {leader} ELSE {}),
      lastKnown |-> IF ~around.rules.kip THEN LastKnownLeader(p, around, leader, leaderWritten, isr)
                    ELSE IF inMinIsr THEN {} ELSE former \ isr,
      leader |-> leader,
      epoch |-> p.epoch + (IF leaderWritten THEN 1 ELSE 0)]

-----------------------------------------------------------------------------
(* Events, as functions from a partition to a partition *)

\* The election that most events run.
Normal(around) == IF around.unclean /\ ~around.rules.kip THEN "UNCLEAN" ELSE "ONLINE"

\* A broker leaves the ISR and may not lead.  (generateLeaderAndIsrUpdates)
Leaves(p, around, b, uncleanly) ==
  Run(p, [around EXCEPT !.electable = @ \ {b}],
      [Nothing(p) EXCEPT !.election = Normal(around), !.isr = @ \ {b}, !.uncleanly = uncleanly])

\* Its session expired, or it shuts down in a controlled way.  (handleBrokerFenced, handleBrokerInControlledShutdown)
Fenced(p, around, b) == IF b \in p.isr THEN Leaves(p, around, b, {}) ELSE p

\* It registers again, still fenced.  `clean`: with the broker epoch of its last registration.  (handleBrokerShutdown)
Registered(p, around, b, clean) ==
  IF clean \/ ~around.rules.elr THEN Fenced(p, around, b)
  ELSE IF b \in p.isr \cup p.elr THEN Leaves(p, around, b, {b}) ELSE p

\* It has caught up with the metadata.  (handleBrokerUnfenced)
Unfenced(p, around, b) ==
  IF p.leader # NoLeader THEN p
  ELSE Run(p, [around EXCEPT !.electable = @ \cup {b}], [Nothing(p) EXCEPT !.election = Normal(around)])

\* An operator takes its registration away; the ELR keeps it.  (handleBrokerUnregistered)
Unregistered(p, around, b) == IF b \in p.isr \cup p.elr THEN Leaves(p, around, b, {}) ELSE p

\* The log directory of its replica failed.  (handleDirectoriesOffline)
DirectoryFailed(p, around, b) == Leaves(p, around, b, {})

\* The leader reports another ISR.  (alterPartition)
IsrAltered(p, around, isr) == Run(p, around, [Nothing(p) EXCEPT !.election = Normal(around), !.isr = isr])

\* ElectLeaders, and the two periodic tasks.  (electLeader)
LeaderElected(p, around, election) ==
  IF \/ election = "PREFERRED" /\ p.leader = p.replicas[1]
     \/ election = "UNCLEAN" /\ p.leader # NoLeader
  THEN p ELSE Run(p, around, [Nothing(p) EXCEPT !.election = election])

\* The Unclean Recovery Manager elects b by its log.  (KIP-966, "Unclean recovery")
Recovered(p, around, b) == Run(p, around, [Nothing(p) EXCEPT !.recovered = b])

\* Another min.insync.replicas was written: around.minIsr.  (createClearElrRecordsAsNeeded; the KIP: "if the new min
\* ISR <= current ISR, the ELR will be removed")
MinIsrWritten(p, around) ==
  IF ~around.rules.elr \/ (around.rules.kip /\ ~MeetsMinIsr(p.isr, around)) THEN p
  ELSE [p EXCEPT !.elr = {}, !.lastKnown = {}]

\* AlterPartitionReassignments to this assignment.  (changePartitionReassignment)
Reassigned(p, around, replicas, removing) ==
  LET adding == Members(replicas) \ Members(p.replicas)
      gone == Members(removing)
  IN Run(p, around, [Nothing(p) EXCEPT !.replicas = replicas \o removing,
                     !.adding = IF adding = {} THEN @ ELSE adding, !.removing = IF gone = {} THEN @ ELSE gone])

\* The reassignment is cancelled.  (cancelPartitionReassignment)
Cancelled(p, around) ==
  LET replicas == SelectSeq(p.replicas, LAMBDA b : b \notin p.adding)
      isr == p.isr \ p.adding
  IN Run(p, around, [Nothing(p) EXCEPT !.election = Normal(around), !.replicas = replicas,
                     !.adding = {}, !.removing = {}, !.isr = IF isr = {} THEN {replicas[1]} ELSE isr])

\* A replica was put into a log directory; before 4.3.0 as if ELR were off.  (handleAssignReplicasToDirs)
DirectoryAssigned(p, around) ==
  Run(p, [around EXCEPT !.rules.elr = @ /\ ~around.rules.everyTarget], Nothing(p))
=============================================================================
