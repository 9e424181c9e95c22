"""Codes of what goes wrong before a cluster answers."""

from __future__ import annotations

from kelr.errors import ExitCode
from kelr.errors.entry import Entry

CLUSTER = (
    Entry(
        "no-cluster-named",
        ExitCode.USAGE,
        "Nothing says which cluster to ask",
        "No flag, environment variable or context names brokers, a snapshot or a metadata log.",
        "The shell of this terminal lacks the variables of another one, or a context was not named.",
        "Give -b HOST:PORT, --context NAME or --snapshot FILE.",
    ),
    Entry(
        "bad-address",
        ExitCode.USAGE,
        "That is not the address of a server",
        "A bootstrap server is HOST:PORT; an IPv6 address stands in brackets.",
        "A blank or a path in the list, a port out of range, or an IPv6 address without brackets.",
        "Write kafka-1:9092,kafka-2:9092 or [::1]:9092.",
    ),
    Entry(
        "unknown-host",
        ExitCode.CONNECT,
        "The name of the server is not known here",
        "The name could not be looked up; nobody was asked anything.",
        "A slip in the name, or a name that only hosts of another network know.",
        "Check the name, look it up (getent hosts NAME), or run kelr on a host beside the brokers.",
    ),
    Entry(
        "nobody-listens",
        ExitCode.CONNECT,
        "Nobody accepts connections at that address",
        "The host refused the connection, or it could not be reached. It does not mean that all brokers are down: only"
        " those that were named were tried.",
        "The broker is down, the port is another one, or a firewall is in between.",
        "Name further brokers with -b, check the port, and whether the broker runs.",
    ),
    Entry(
        "no-answer-in-time",
        ExitCode.CONNECT,
        "The server accepts the connection and says nothing",
        "Something listens there, and gave no answer within --timeout.",
        "A broker that hangs or is overloaded, a load balancer with nobody behind it, or a port of another service.",
        "Try another broker, or a longer --timeout; a thread dump of the broker says whether it hangs.",
    ),
    Entry(
        "no-controller",
        ExitCode.CONNECT,
        "No controller that leads answers",
        "Brokers answer and pass questions on to the controllers, of which none that leads answered. What brokers tell"
        " is what they knew last: nobody is elected, or a controller elects that they do not reach. Nothing was"
        " changed.",
        "The majority of the controllers is down or cut off, or an election among them goes on at this moment.",
        "Look at the controllers' server logs, start them until a majority runs, and try again.",
    ),
    Entry(
        "tls-expected",
        ExitCode.CONNECT,
        "The port speaks TLS, and kelr was told not to",
        "The listener does a TLS handshake; kelr sent a request in the clear, which it cannot understand.",
        "No client properties file was given, or security.protocol in it is not SSL or SASL_SSL.",
        "Set security.protocol=SSL (or SASL_SSL) in a file, and give it with --command-config.",
    ),
    Entry(
        "plaintext-expected",
        ExitCode.CONNECT,
        "The port speaks Kafka without TLS, and kelr was told to use it",
        "The listener answers requests in the clear; nothing secret was sent to it.",
        "The port of another listener was given, or security.protocol is SSL where it should be PLAINTEXT.",
        "Give the port of the TLS listener, or correct security.protocol.",
    ),
    Entry(
        "not-kafka",
        ExitCode.CONNECT,
        "The server does not speak Kafka",
        "It answered something else, such as HTTP.",
        "The port of a metrics endpoint, of a web page or of another service was given.",
        "Give the port of a Kafka listener, 9092 by default.",
    ),
    Entry(
        "certificate-not-trusted",
        ExitCode.CONNECT,
        "No secure connection: the broker's certificate was not accepted",
        "The TLS handshake failed on kelr's side. No credentials were sent.",
        "The certificate of the authority is missing in the trust store, the certificate expired, or it names another"
        " host than the one that was given.",
        "Give the authority's certificate (ssl.truststore.location, PEM), and the host name that the certificate has;"
        " openssl s_client -connect HOST:PORT shows it.",
    ),
    Entry(
        "client-certificate-refused",
        ExitCode.CONNECT,
        "The broker did not accept kelr's certificate, or wants one",
        "The TLS handshake failed on the broker's side.",
        "The listener has ssl.client.auth=required, and kelr has no certificate, or one that the broker does not"
        " trust.",
        "Set ssl.keystore.type=PEM and ssl.keystore.location to a certificate that the broker's trust store knows.",
    ),
    Entry(
        "login-failed",
        ExitCode.CONNECT,
        "The SASL login did not come about",
        "The broker can be reached, and the login ended without a word on user name and password.",
        "The listener wants no SASL, another mechanism, or TLS beneath it.",
        "Compare security.protocol and sasl.mechanism with the listener's (listener.security.protocol.map).",
    ),
    Entry(
        "login-expected",
        ExitCode.CONNECT,
        "The broker hung up on the request",
        "It speaks Kafka, or TLS, and closed the connection at kelr's first request.",
        "Mostly a listener that wants SASL, where security.protocol has none; or a broker that was just stopping.",
        "If it wants a login: set security.protocol=SASL_SSL (or SASL_PLAINTEXT) and sasl.mechanism in a file, and give"
        " it with --command-config.",
    ),
    Entry(
        "credentials-refused",
        ExitCode.CONNECT,
        "The broker refused user name or password",
        "It judged the credentials and did not accept them. Brokers do not say which of the two is wrong.",
        "A wrong or changed password, a user that does not exist, or a SCRAM user made for another mechanism.",
        "Check sasl.jaas.config; kafka-configs.sh --describe --entity-type users lists SCRAM users.",
    ),
    Entry(
        "no-kerberos-ticket",
        ExitCode.CONNECT,
        "There is no Kerberos ticket for the brokers",
        "GSSAPI was asked for, and the credentials cache has no ticket that leads to one for the brokers' service. No"
        " broker has refused anything: none was asked yet, or the ticket ended while kelr ran.",
        "Nobody ran kinit, the ticket ended, the service name is another one, the brokers were given by an address that"
        " is in no principal's name, or this machine's clock is off.",
        "Run kinit, and klist to see; check sasl.kerberos.service.name and the names of the brokers.",
    ),
    Entry(
        "kdc-not-reached",
        ExitCode.CONNECT,
        "No KDC of the Kerberos realm answers",
        "A ticket for the brokers was to be had from a KDC, and none is known, or none answered within ten"
        " seconds. No broker was asked.",
        "The file krb5.conf names none or others, a firewall is in between, or the KDCs are down.",
        "Check the realm in krb5.conf (KRB5_CONFIG names another file); a ticket that klist shows for the brokers'"
        " service needs no KDC.",
    ),
    Entry(
        "kerberos-package-missing",
        ExitCode.UNSUPPORTED,
        "This Python cannot speak Kerberos",
        "GSSAPI needs the Python package gssapi, with the system's Kerberos libraries; one of them is not there.",
        "kelr's own packages do not bring it along, because it has to be built on each system.",
        "Run pip install gssapi (it takes libkrb5-dev or krb5-devel, and a compiler), or log in another way.",
    ),
    Entry(
        "librdkafka-without-kerberos",
        ExitCode.UNSUPPORTED,
        "Producing over Kerberos needs another librdkafka",
        "Records are produced through librdkafka, and that of confluent-kafka's wheels knows no GSSAPI. All else goes"
        " over kafka-python.",
        "The wheels are built without libsasl2.",
        "Build confluent-kafka on a librdkafka with libsasl2, or give a listener with another login.",
    ),
    Entry(
        "no-broker-answers",
        ExitCode.CONNECT,
        "No broker answers any more",
        "The cluster was reached, and then no broker gave an answer in time. What was shown is what had been read.",
        "Brokers went down while kelr worked, or their advertised listeners cannot be reached from here.",
        "Check advertised.listeners from this host; then run the same command again.",
    ),
    Entry(
        "brokers-too-old",
        ExitCode.UNSUPPORTED,
        "These brokers know no request that tells it",
        "The brokers answered, and none of the requests that kelr could use is known to them.",
        "The brokers are older than Kafka 2.1 or so (3.9 for where controllers are), or a proxy hides requests.",
        "Ask the brokers themselves and not a proxy; docs/requests.md says what each version can tell.",
    ),
    Entry(
        "not-a-controller",
        ExitCode.UNSUPPORTED,
        "That is a broker's listener, and the metadata log is read from controllers",
        "Brokers do not give the metadata log to clients.",
        "--bootstrap-controller was given the address of a broker.",
        "Give a controller's listener (controller.listener.names), or leave it to -b, which finds controllers.",
    ),
    Entry(
        "wrong-cluster",
        ExitCode.REFUSED,
        "This is another cluster than the one that is meant",
        "The cluster id that was expected, by the context or by what is beside it, is not the one that answered."
        " Nothing"
        " was changed, and nothing of the one was mixed with the other.",
        "A context whose address moved, DNS that leads elsewhere, a metadata log of another cluster, or a cluster that"
        " was formatted anew.",
        "Check the address. If it is the right cluster after all, correct cluster_id in contexts.toml.",
    ),
    Entry(
        "topic-unknown",
        ExitCode.USAGE,
        "There is no such topic, or it may not be seen",
        "Kafka answers the same for a topic that does not exist and for one that the principal may not see.",
        "A slip in the name, a deleted topic, or a missing DESCRIBE.",
        "`kelr describe` without a target lists every topic that this principal sees.",
    ),
    Entry(
        "partition-unknown",
        ExitCode.USAGE,
        "The topic has no such partition",
        "The topic is there; the numbers that it has are in the message.",
        "A slip, or a topic that was made again with fewer partitions.",
        "Name partitions that are there, or the topic alone for all of them.",
    ),
    Entry(
        "saved-not-live",
        ExitCode.USAGE,
        "A cluster is changed only on what it says just now",
        "What answers is a snapshot or a metadata log: it says what was.",
        "--snapshot or --metadata-log was left in a command that changes something.",
        "Give -b HOST:PORT or --context NAME instead.",
    ),
)
