package io.deepep.spi;

import io.deepep.Communicator;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.RankMismatchException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * Steps that all ranks take together. A rank that cannot take a step tells the others why, so that
 * none continues and waits for it.
 *
 * @param communicator this rank's end of the group
 * @param timeout how long to wait for the others in each step
 * @param failure the beginning of the message if a step fails, such as "the ranks cannot share
 *     memory"
 * @param cure what to do about it, unless the exception of the failed rank has a cure
 */
public record Meeting(Communicator communicator, Duration timeout, String failure, String cure) {
    /**
     * Runs {@code part} on this rank and returns the results of all ranks, in rank order.
     *
     * @throws DeepEpUnavailableException on every rank, if {@code part} threw on any; it names
     *     those ranks
     * @throws DeepEpTimeoutException if a rank does not come in time; it is named. If {@code part}
     *     threw on this rank, that is thrown instead, with the time-out suppressed
     */
    public List<String> together(Supplier<String> part) {
        RuntimeException own = null;
        Answer answer;
        try {
            answer = new Answer(part.get(), "", "");
        } catch (DeepEpUnavailableException e) {
            own = e;
            answer = new Answer("", e.reason(), e.cure());
        } catch (RuntimeException e) {
            own = e;
            answer = new Answer("", hasMessage(e) ? e.getMessage() : e.toString(), cure);
        }
        List<Answer> answers = exchange(answer, own);
        throwIfFailed(answers, own);
        return answers.stream().map(Answer::result).toList();
    }

    /**
     * What all ranks say at the same time, in their order. Collective.
     *
     * @param read makes something of a rank and its message, or throws a {@link
     *     RankMismatchException} with the rank if that is of another call
     */
    public static <T> List<T> gather(
            Communicator communicator,
            byte[] own,
            Duration timeout,
            BiFunction<Integer, byte[], T> read) {
        List<byte[]> messages = communicator.allGather(own, timeout);
        return IntStream.range(0, messages.size())
                .mapToObj(rank -> read.apply(rank, messages.get(rank)))
                .toList();
    }

    /** If a peer is gone and this rank has failed itself, it throws its own failure. */
    private List<Answer> exchange(Answer answer, RuntimeException own) {
        try {
            return gather(communicator, answer.encode(), timeout, this::decode);
        } catch (RuntimeException lost) {
            if (own == null) {
                throw lost;
            }
            own.addSuppressed(lost);
            throw own;
        }
    }

    private Answer decode(int rank, byte[] message) {
        try {
            return Answer.decode(message);
        } catch (IOException noAnswer) {
            throw RankMismatchException.ofCall(
                    failure, NodeCommunicator.nameOf(communicator, rank));
        }
    }

    /** The same of a step without a result. */
    public void step(Runnable part) {
        together(
                () -> {
                    part.run();
                    return "";
                });
    }

    /**
     * The same of a step that uses what other processes hold, such as their memory. One of them may
     * end meanwhile, so that the step fails: then that rank is named.
     *
     * @throws DeepEpTimeoutException also if {@code part} threw, where a rank is gone
     */
    public void stepOnPeers(Runnable part) {
        try {
            step(part);
        } catch (RuntimeException failed) {
            for (Throwable each : failed.getSuppressed()) {
                if (each instanceof DeepEpTimeoutException lost) {
                    throw NodeCommunicator.isNamedAlive(communicator, lost.peer()) ? failed : lost;
                }
            }
            if (failed instanceof DeepEpUnavailableException) {
                meetAgain(failed);
            }
            throw failed;
        }
    }

    /** Whoever has ended after it answered does not come. */
    private void meetAgain(RuntimeException failed) {
        try {
            communicator.barrier(timeout);
        } catch (DeepEpTimeoutException lost) {
            lost.addSuppressed(failed);
            throw lost;
        }
    }

    private static boolean hasMessage(RuntimeException e) {
        return e.getMessage() != null && !e.getMessage().isBlank();
    }

    private void throwIfFailed(List<Answer> answers, RuntimeException own) {
        List<String> problems = new ArrayList<>();
        String firstCure = "";
        for (int rank = 0; rank < answers.size(); rank++) {
            Answer answer = answers.get(rank);
            if (!answer.problem.isEmpty()) {
                int name = NodeCommunicator.nameOf(communicator, rank);
                problems.add("rank " + name + ": " + answer.problem);
                firstCure = firstCure.isEmpty() ? answer.cure : firstCure;
            }
        }
        if (!problems.isEmpty()) {
            throw new DeepEpUnavailableException(
                    failure + ": " + String.join("; ", problems), firstCure, own);
        }
    }

    /** The answer of a rank: its result, or why it has none and what to do about it. */
    private record Answer(String result, String problem, String cure) {
        byte[] encode() {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (DataOutputStream out = new DataOutputStream(bytes)) {
                for (String text : List.of(result, problem, cure)) {
                    byte[] utf8 = text.getBytes(StandardCharsets.UTF_8); // of any length
                    out.writeInt(utf8.length);
                    out.write(utf8);
                }
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
            return bytes.toByteArray();
        }

        static Answer decode(byte[] message) throws IOException {
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(message));
            Answer answer = new Answer(readText(in), readText(in), readText(in));
            requireAnswer(in.available() == 0);
            return answer;
        }

        private static String readText(DataInputStream in) throws IOException {
            int length = in.readInt();
            requireAnswer(length >= 0 && length <= in.available());
            return new String(in.readNBytes(length), StandardCharsets.UTF_8);
        }

        private static void requireAnswer(boolean likeOne) throws IOException {
            if (!likeOne) {
                throw new IOException("not an answer");
            }
        }
    }
}
