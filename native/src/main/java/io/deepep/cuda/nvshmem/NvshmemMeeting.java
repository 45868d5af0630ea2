package io.deepep.cuda.nvshmem;

import io.deepep.Communicator;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.RankMismatchException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * Steps that all ranks take together. A rank that cannot tells the others why, so that nobody goes
 * on into a native call that would wait for it for ever.
 */
final class NvshmemMeeting {
    private static final String CURE = "check the machine with deepep doctor";

    private final Communicator communicator;
    private final Duration timeout;

    NvshmemMeeting(Communicator communicator, Duration timeout) {
        this.communicator = communicator;
        this.timeout = timeout;
    }

    /**
     * Does this rank's part and gathers all ranks' results, in rank order.
     *
     * @throws DeepEpUnavailableException on every rank, naming those that failed
     */
    List<String> together(Supplier<String> part) {
        RuntimeException own = null;
        Answer answer;
        try {
            answer = new Answer(part.get(), "", "");
        } catch (DeepEpUnavailableException e) {
            own = e;
            answer = new Answer("", e.reason(), e.cure());
        } catch (RuntimeException e) {
            own = e;
            answer = new Answer("", String.valueOf(e.getMessage()), CURE);
        }
        List<Answer> answers =
                communicator.allGather(answer.encode(), timeout).stream()
                        .map(Answer::decode)
                        .toList();
        throwIfFailed(answers, own);
        return answers.stream().map(Answer::result).toList();
    }

    private static void throwIfFailed(List<Answer> answers, RuntimeException own) {
        List<String> problems = new ArrayList<>();
        String cure = "";
        for (int rank = 0; rank < answers.size(); rank++) {
            Answer answer = answers.get(rank);
            if (!answer.problem.isEmpty()) {
                problems.add("rank " + rank + ": " + answer.problem);
                cure = cure.isEmpty() ? answer.cure : cure;
            }
        }
        if (!problems.isEmpty()) {
            throw new DeepEpUnavailableException(
                    "NVSHMEM cannot start: " + String.join("; ", problems), cure, own);
        }
    }

    /**
     * Compares settings that all ranks must share.
     *
     * @param gathered of every rank, as {@link #encodeSettings} wrote them
     * @throws RankMismatchException on every rank, with both values
     */
    static void requireSame(List<String> gathered) {
        List<String> first = gathered.getFirst().lines().toList();
        for (int rank = 1; rank < gathered.size(); rank++) {
            List<String> other = gathered.get(rank).lines().toList();
            for (int i = 0; i < first.size(); i++) {
                if (!first.get(i).equals(other.get(i))) {
                    throw RankMismatchException.of(
                            "NVSHMEM",
                            name(first.get(i)),
                            0,
                            value(first.get(i)),
                            rank,
                            value(other.get(i)));
                }
            }
        }
    }

    /** Lines of NAME=VALUE; the same names on every rank. */
    static String encodeSettings(SortedMap<String, String> settings) {
        return settings.entrySet().stream()
                .map(setting -> setting.getKey() + "=" + setting.getValue())
                .collect(Collectors.joining("\n"));
    }

    private static String name(String setting) {
        return setting.substring(0, setting.indexOf('='));
    }

    private static String value(String setting) {
        return setting.substring(setting.indexOf('=') + 1);
    }

    /** What a rank says: its result, or why it has none and what mends that. */
    private record Answer(String result, String problem, String cure) {
        byte[] encode() {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (DataOutputStream out = new DataOutputStream(bytes)) {
                out.writeUTF(result);
                out.writeUTF(problem);
                out.writeUTF(cure);
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
            return bytes.toByteArray();
        }

        static Answer decode(byte[] message) {
            try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(message))) {
                return new Answer(in.readUTF(), in.readUTF(), in.readUTF());
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
        }
    }
}
