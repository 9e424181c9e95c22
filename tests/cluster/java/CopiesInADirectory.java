import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * Remote storage (KIP-405) that is a directory of this machine, the same one for all brokers of a lab: one directory a
 * segment, "TOPIC-PARTITION/FIRST-LAST-ID", with one file for the records and one for each index.
 */
public final class CopiesInADirectory implements RemoteStorageManager {
    private Path directory;

    @Override
    public void configure(Map<String, ?> configs) {
        directory = Paths.get((String) configs.get("directory"));
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata of, LogSegmentData data)
            throws RemoteStorageException {
        Path place = place(of);
        try {
            Files.createDirectories(place);
            Files.copy(data.logSegment(), place.resolve("records"));
            Files.copy(data.offsetIndex(), index(of, IndexType.OFFSET));
            Files.copy(data.timeIndex(), index(of, IndexType.TIMESTAMP));
            Files.copy(data.producerSnapshotIndex(), index(of, IndexType.PRODUCER_SNAPSHOT));
            if (data.transactionIndex().isPresent()) {
                Files.copy(data.transactionIndex().get(), index(of, IndexType.TRANSACTION));
            }
            ByteBuffer epochs = data.leaderEpochIndex();
            byte[] bytes = new byte[epochs.remaining()];
            epochs.get(bytes);
            Files.write(index(of, IndexType.LEADER_EPOCH), bytes);
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
        return Optional.empty();
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata of, int first) throws RemoteStorageException {
        return fetchLogSegment(of, first, Integer.MAX_VALUE);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata of, int first, int last) throws RemoteStorageException {
        byte[] all = read(place(of).resolve("records"));
        int end = (int) Math.min(all.length, last + 1L);
        return new java.io.ByteArrayInputStream(Arrays.copyOfRange(all, Math.min(first, end), end));
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata of, IndexType type) throws RemoteStorageException {
        return new java.io.ByteArrayInputStream(read(index(of, type)));
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata of) throws RemoteStorageException {
        Path place = place(of);
        if (!Files.exists(place)) {
            return;
        }
        try (Stream<Path> files = Files.list(place)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                Files.delete(file);
            }
            Files.delete(place);
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public void close() {
    }

    private static byte[] read(Path file) throws RemoteStorageException {
        try {
            return Files.readAllBytes(file);
        } catch (NoSuchFileException error) {
            throw new RemoteResourceNotFoundException(error);
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    private Path index(RemoteLogSegmentMetadata of, IndexType type) {
        return place(of).resolve(type.name().toLowerCase());
    }

    private Path place(RemoteLogSegmentMetadata of) {
        String name = of.startOffset() + "-" + of.endOffset() + "-" + of.remoteLogSegmentId().id();
        return directory.resolve(of.topicIdPartition().topicPartition().toString()).resolve(name);
    }
}
