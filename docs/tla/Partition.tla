----------------------------- MODULE Partition ------------------------------
(***************************************************************************)
(* One partition: the controller's record of it (Controller.tla), its      *)
(* brokers, and the logs of its replicas.  What clients were promised must *)
(* outlive what happens to the brokers.                                    *)
(*                                                                         *)
(* Left out, and why it may be (docs/tla/README.md): partition epochs,     *)
(* requests under way, reassignments, log directories, zombie leaders.     *)
(***************************************************************************)
EXTENDS Controller

CONSTANTS
  Replicas,     \* the assignment, a sequence of brokers
  Rules,        \* a rule set of Controller.tla
  MinIsr,       \* min.insync.replicas to begin with
  UncleanElections, \* unclean.leader.election.enable
  Events,       \* the events that may happen besides the usual ones: of Optional
  MaxRecords,   \* no log is longer
  MaxEpoch      \* no history goes on from a higher leader epoch

Optional == {"MinIsrWrite", "ElrFeature", "ElectPREFERRED", "ElectUNCLEAN"}
ASSUME Events \subseteq Optional

VARIABLES
  partition, \* the controller's record, see Controller.tla
  broker,    \* what each broker is, see Up and below
  minIsr,    \* min.insync.replicas in force
  elrOn,     \* eligible.leader.replicas.version is 1
  log,       \* of each replica: the leader epochs that wrote its records, in order
  ends,      \* the log end of each follower as the leader knows it by its last fetch
  heard,     \* the log as each replica told it to the Unclean Recovery Manager, [epoch, end]
  committed, \* records that were below the high watermark, as <<offset, epoch>>
  givenUp,   \* those of them that the last unclean election's leader lacked
  lossy,     \* replicas that lost records in a shutdown and have not caught up since
  lowest     \* the lowest min ISR that there was

vars == <<partition, broker, minIsr, elrOn, log, ends, heard, committed, givenUp, lossy, lowest>>

Brokers == Members(Replicas)

Up == "live"           \* runs, and the controller counts it in
Behind == "fenced"     \* runs, and is fenced: its session expired, or it has not caught up with the metadata
Crashed == "crashed"   \* does not run, and the controller does not know it yet
Dead == "dead"         \* does not run, and is fenced
Stopped == "stopped"   \* does not run after a clean shutdown: its CleanShutdownFile has the right broker epoch
Unknown == -1
NotHeard == [epoch |-> -1, end |-> -1]

Least(S) == CHOOSE n \in S : \A m \in S : n <= m
Prefix(s, n) == SubSeq(s, 1, n)
\* Where one record is the same in two logs, so is everything before it.
Common(s, t) ==
  LET shorter == Least({Len(s), Len(t)})
  IN Least({shorter} \cup {n \in 0..(shorter - 1) : s[n + 1] # t[n + 1]})
Records(s) == {<<i, s[i]>> : i \in DOMAIN s}

Electable == {b \in Brokers : broker[b] \in {Up, Crashed}}
Around == [electable |-> Electable, minIsr |-> minIsr, unclean |-> UncleanElections, rules |-> [Rules EXCEPT !.elr = elrOn]]

-----------------------------------------------------------------------------
(* The controller writes a record, and the replicas go by it at once *)

SameEpoch == partition'.epoch = partition.epoch
\* A new leader knows nothing of its followers.
NewEnds(e) == ends' = IF SameEpoch THEN e ELSE [b \in Brokers |-> Unknown]
\* What was heard is void once there is another leader epoch.
NewHeard(h) == heard' = IF SameEpoch THEN h ELSE [b \in Brokers |-> NotHeard]

\* An election of a replica outside of ISR and ELR is unclean: what its log lacks is given up.
GiveUp ==
  LET l == partition'.leader
      uncleanly == l \notin {partition.leader, NoLeader} /\ l \notin partition.isr \cup partition.elr
  IN givenUp' = IF uncleanly THEN committed \ Records(log[l]) ELSE givenUp

\* KIP-966: the high watermark advances only while the committed ISR has min ISR members.
MayAdvance(p, min) == Cardinality(p.isr) >= min

\* The leader raises its high watermark to the lowest log end of its ISR: with every append, fetch and record of the
\* controller, at once.  (Partition.maybeIncrementLeaderHW)
AdvanceHighWatermark ==
  LET l == partition'.leader
      mark == Least({Len(log'[l])} \cup {ends'[b] : b \in partition'.isr \ {l}})
  IN committed' = IF l # NoLeader /\ broker'[l] = Up /\ MayAdvance(partition', minIsr')
                  THEN committed \cup {<<i, log'[l][i]>> : i \in 1..mark} ELSE committed
AdvanceWithRecord == IF partition' = partition THEN UNCHANGED committed ELSE AdvanceHighWatermark

-----------------------------------------------------------------------------
(* Records *)

Leader == partition.leader
Serving == Leader # NoLeader /\ broker[Leader] = Up

\* Where this leader's epoch begins, and the high watermark since.
EpochStart == Cardinality({i \in DOMAIN log[Leader] : log[Leader][i] # partition.epoch})
HighWatermark == EpochStart + Cardinality({r \in committed : r[2] = partition.epoch})

\* Every record counts: below the high watermark it is acknowledged to acks=all, and consumers see it whatever the acks.
Produce ==
  /\ Serving /\ Len(log[Leader]) < MaxRecords
  /\ log' = [log EXCEPT ![Leader] = Append(@, partition.epoch)]
  /\ UNCHANGED <<partition, broker, minIsr, elrOn, ends, heard, givenUp, lossy, lowest>>
  /\ AdvanceHighWatermark

\* One fetch and its answer.  A log that has parted from the leader's is truncated first; the leader counts it from the
\* next fetch on.
Fetch(b) ==
  /\ Serving /\ b # Leader /\ broker[b] \in {Up, Behind}
  /\ LET common == Common(log[b], log[Leader]) IN
     IF common < Len(log[b])
     THEN log' = [log EXCEPT ![b] = Prefix(@, common)] /\ UNCHANGED ends
     ELSE /\ ends' = [ends EXCEPT ![b] = Len(log[b])]
          /\ log' = [log EXCEPT ![b] = log[Leader]]
  /\ UNCHANGED <<partition, broker, minIsr, elrOn, heard, givenUp, lossy, lowest>>
  /\ AdvanceHighWatermark
  /\ <<log, ends, committed>>' # <<log, ends, committed>>

\* By its last fetch it has everything below the high watermark and from before the epoch.  (Partition.isFollowerInSync)
CaughtUp(b) == ends[b] >= HighWatermark

\* AlterPartition: the leader takes replicas out of the ISR, and lets in those that have caught up.
AlterPartition(isr) ==
  /\ Serving /\ Leader \in isr /\ isr # partition.isr
  /\ \A b \in isr \ partition.isr : broker[b] = Up /\ CaughtUp(b)
  /\ partition' = IsrAltered(partition, Around, isr)
  /\ NewEnds(ends) /\ NewHeard(heard) /\ GiveUp
  /\ lossy' = lossy \ {b \in isr \ partition.isr : committed \subseteq Records(log[b])}
  /\ UNCHANGED <<broker, minIsr, elrOn, log, lowest>>
  /\ AdvanceWithRecord

-----------------------------------------------------------------------------
(* Brokers *)

\* The controller's side of what happens to a broker; its process and its log stay as they are.
Happens(b, now, record) ==
  /\ broker' = [broker EXCEPT ![b] = now]
  /\ partition' = record
  /\ NewHeard(heard) /\ GiveUp
  /\ UNCHANGED <<minIsr, elrOn, log, lossy, lowest>>

\* Its session expires: no heartbeat came for long enough.
Fence(b) ==
  /\ broker[b] \in {Up, Crashed}
  /\ Happens(b, IF broker[b] = Up THEN Behind ELSE Dead, Fenced(partition, Around, b))
  /\ NewEnds(ends) /\ AdvanceWithRecord

\* Its heartbeat says that it has caught up with the metadata.
Unfence(b) ==
  /\ broker[b] = Behind
  /\ Happens(b, Up, Unfenced(partition, Around, b))
  /\ NewEnds(ends) /\ AdvanceWithRecord

\* A controlled shutdown: everything is written to the disk, and the CleanShutdownFile.
CleanShutdown(b) ==
  /\ broker[b] = Up
  /\ Happens(b, Stopped, Fenced(partition, Around, b))
  /\ NewEnds(ends) /\ AdvanceWithRecord

\* What the leader knew of a replica's log end is of another broker epoch from now on, and counts no more (KIP-903).
EndsAfterRegistration(b) == [ends EXCEPT ![b] = Unknown]

\* A new incarnation registers.
Register(b) ==
  /\ broker[b] \in {Crashed, Dead, Stopped}
  /\ broker' = [broker EXCEPT ![b] = Behind]
  /\ partition' = Registered(partition, Around, b, broker[b] = Stopped)
  /\ NewEnds(EndsAfterRegistration(b)) /\ NewHeard([heard EXCEPT ![b] = NotHeard]) /\ GiveUp
  /\ UNCHANGED <<minIsr, elrOn, log, lossy, lowest>>
  /\ AdvanceWithRecord

\* Its process dies, and n records are left on its disk: with the machine's power the page cache is gone.
UncleanShutdown(b, n) ==
  /\ broker[b] \in {Up, Behind} /\ n <= Len(log[b])
  /\ broker' = [broker EXCEPT ![b] = IF @ = Up THEN Crashed ELSE Dead]
  /\ log' = [log EXCEPT ![b] = Prefix(@, n)]
  /\ lossy' = IF n < Len(log[b]) THEN lossy \cup {b} ELSE lossy
  /\ ends' = IF b = Leader THEN [f \in Brokers |-> Unknown] ELSE ends
  /\ UNCHANGED <<partition, minIsr, elrOn, heard, committed, givenUp, lowest>>

-----------------------------------------------------------------------------
(* Unclean recovery, of the KIP *)

Leaderless == Leader = NoLeader
\* No replica is live that may lead cleanly.
NobodyIsValid == Valid(partition.isr, partition.elr, Around) = {}
\* Whose logs balanced must know.  The KIP does not say whose where LastKnownELR is empty: all, then.
Quorum == IF partition.lastKnown = {} THEN Brokers ELSE partition.lastKnown
Strategy == IF Rules.kip THEN Rules.strategy ELSE "none"

Asks == Leaderless /\ CASE Strategy = "balanced" -> partition.isr \cup partition.elr = {} /\ Quorum \subseteq Electable
                        [] Strategy = "aggressive" -> NobodyIsValid
                        [] OTHER -> FALSE

\* GetReplicaLogInfo is answered.  The answer counts until the broker registers again or the leader epoch moves on.
Answer(b) ==
  /\ Asks /\ broker[b] \in {Up, Behind} /\ heard[b] = NotHeard
  /\ heard' = [heard EXCEPT ![b] = [epoch |-> IF log[b] = <<>> THEN 0 ELSE log[b][Len(log[b])], end |-> Len(log[b])]]
  /\ UNCHANGED <<partition, broker, minIsr, elrOn, log, ends, committed, givenUp, lossy, lowest>>

\* Balanced waits for its whole quorum; aggressive takes the best of the answers that came in time, whoever's they are.
Enough(answered) == answered # {} /\ (Strategy = "balanced" => Quorum \subseteq answered)

Better(a, b) == heard[a].epoch > heard[b].epoch \/ (heard[a].epoch = heard[b].epoch /\ heard[a].end > heard[b].end)
Best(S) == {b \in S : \A other \in S : ~Better(other, b)}

\* The live replica with the best log is elected: the highest last epoch, then the highest log end.
Recover ==
  LET answered == {b \in Brokers : heard[b] # NotHeard}
      live == answered \cap Electable
  IN /\ Asks /\ Enough(answered) /\ live # {}
     /\ partition' = Recovered(partition, Around, First(Replicas, Best(live)))
     /\ NewEnds(ends) /\ NewHeard(heard) /\ GiveUp
     /\ UNCHANGED <<broker, minIsr, elrOn, log, lossy, lowest>>
     /\ AdvanceWithRecord

\* Another controller knows nothing of what was heard.
FailOver ==
  /\ heard # [b \in Brokers |-> NotHeard]
  /\ heard' = [b \in Brokers |-> NotHeard]
  /\ UNCHANGED <<partition, broker, minIsr, elrOn, log, ends, committed, givenUp, lossy, lowest>>

-----------------------------------------------------------------------------
(* Operators *)

Elect(election) ==
  /\ ("Elect" \o election) \in Events
  /\ partition' = LeaderElected(partition, Around, election)
  /\ partition' # partition
  /\ NewEnds(ends) /\ NewHeard(heard) /\ GiveUp
  /\ UNCHANGED <<broker, minIsr, elrOn, log, lossy, lowest>>
  /\ AdvanceWithRecord

\* The same value again clears the ELR, too, where it is the topic's first one of its own.  The leader goes by the new
\* one from its next append, fetch or record on.
MinIsrWrite(n) ==
  /\ "MinIsrWrite" \in Events
  /\ minIsr' = n /\ lowest' = Least({n, lowest})
  /\ partition' = MinIsrWritten(partition, [Around EXCEPT !.minIsr = n])
  /\ partition' # partition \/ n # minIsr
  /\ UNCHANGED <<broker, elrOn, log, ends, heard, givenUp, lossy>>
  /\ AdvanceWithRecord

\* eligible.leader.replicas.version is set to 0, or to 1 again; a partition keeps what it has until its next change.
ElrFeature ==
  /\ "ElrFeature" \in Events
  /\ elrOn' = ~elrOn
  /\ UNCHANGED <<partition, broker, minIsr, log, ends, heard, committed, givenUp, lossy, lowest>>

-----------------------------------------------------------------------------
Init ==
  /\ partition = [replicas |-> Replicas, adding |-> {}, removing |-> {}, isr |-> Brokers, elr |-> {},
                  lastKnown |-> {}, leader |-> Replicas[1], epoch |-> 1]
  /\ broker = [b \in Brokers |-> Up]
  /\ minIsr = MinIsr /\ lowest = MinIsr /\ elrOn = Rules.elr
  /\ log = [b \in Brokers |-> <<>>]
  /\ ends = [b \in Brokers |-> Unknown]
  /\ heard = [b \in Brokers |-> NotHeard]
  /\ committed = {} /\ givenUp = {} /\ lossy = {}

Next ==
  \/ Produce
  \/ \E isr \in SUBSET Brokers : AlterPartition(isr)
  \/ \E b \in Brokers :
       \/ Fetch(b) \/ Fence(b) \/ Unfence(b) \/ CleanShutdown(b) \/ Register(b) \/ Answer(b)
       \/ \E n \in 0..MaxRecords : UncleanShutdown(b, n)
  \/ Recover \/ FailOver
  \/ \E election \in {"PREFERRED", "UNCLEAN"} : Elect(election)
  \/ \E n \in 1..Cardinality(Brokers) : MinIsrWrite(n)
  \/ ElrFeature

Spec == Init /\ [][Next]_vars

Bounded == partition.epoch <= MaxEpoch

-----------------------------------------------------------------------------
(* What always holds *)

TypeOK ==
  /\ partition.isr \subseteq Brokers /\ partition.elr \subseteq Brokers /\ partition.lastKnown \subseteq Brokers
  /\ partition.leader \in Brokers \cup {NoLeader} /\ partition.epoch \in Nat
  /\ broker \in [Brokers -> {Up, Behind, Crashed, Dead, Stopped}]
  /\ minIsr \in 1..Cardinality(Brokers) /\ lowest \in 1..minIsr
  /\ ends \in [Brokers -> Unknown..MaxRecords]
  /\ givenUp \subseteq committed /\ lossy \subseteq Brokers

\* "The member of ELR should not be in ISR."
ElrIsApartFromIsr == partition.isr \cap partition.elr = {}

LeaderIsInIsr == Leader # NoLeader => Leader \in partition.isr

\* "If ELR is not empty, the ISR is under min ISR."
ElrOnlyUnderMinIsr == partition.elr # {} => Cardinality(partition.isr) < minIsr

Promised == committed \ givenUp

\* "The member of ELR should have the data at least to HWM", and those of the ISR: but for a replica that does not run,
\* since the controller learns of an unclean shutdown when it registers again.
MembersHoldPromised ==
  \A b \in partition.isr \cup partition.elr : broker[b] \in {Up, Behind} => Promised \subseteq Records(log[b])

\* A clean election loses nothing: a leader that serves holds whatever no unclean election gave up.
LeaderHoldsPromised == Serving => Promised \subseteq Records(log[Leader])

\* "Our ultimate goal is to elect a leader without data loss or HWM moving backward when we only have min ISR - 1 unclean
\* shutdowns": none, balanced.
FewLossesLoseNothing == Serving /\ Cardinality(lossy) < lowest => committed \subseteq Records(log[Leader])

\* What released Kafka keeps of it, and what Kafka keeps without ELR: as long as no disk loses anything.
NoLossLosesNothing == Serving /\ lossy = {} => committed \subseteq Records(log[Leader])

\* Vanlightly, "MinISR recovery quorum".
QuorumHasMinIsrMembers ==
  partition.isr \cup partition.elr = {} => Cardinality(partition.lastKnown) >= lowest

\* Without ELR the last member stays in the ISR.
IsrIsNotEmpty == partition.isr # {}
=============================================================================
