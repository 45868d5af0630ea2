package io.deepep.bench.measure;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.TextTable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * What other libraries took for the same operations, to be read beside ours.
 *
 * @param file where they come from
 */
public record PeerFigures(Path file, List<Figure> figures) {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Copies the list. */
    public PeerFigures {
        figures = List.copyOf(figures);
    }

    /**
     * A library's median time for one operation.
     *
     * @param library its name and version; null for ours
     * @param op as our records name it; {@code decode} and {@code decode-pre-reduced} for a layer
     *     of the decoding loop
     * @param dtype of the rows; in the decoding loop of those that are combined
     * @param tokens of each rank
     * @param sms multiprocessors of each rank, null for any
     * @param micros of the slowest rank
     */
    public record Figure(
            String library,
            String op,
            String dtype,
            int ranks,
            int nodes,
            int tokens,
            int hidden,
            int topk,
            int experts,
            Integer sms,
            double micros) {
        private boolean isWhole() {
            return Stream.of(library, op, dtype).allMatch(each -> each != null && !each.isBlank())
                    && Stream.of(ranks, nodes, tokens, hidden, topk, experts)
                            .allMatch(number -> number > 0)
                    && (sms == null || sms > 0)
                    && Samples.isTime(micros);
        }

        /** Whether both are about the same work. */
        private boolean matches(Figure other) {
            return op.equals(other.op)
                    && dtype.equals(other.dtype)
                    && ranks == other.ranks
                    && nodes == other.nodes
                    && tokens == other.tokens
                    && hidden == other.hidden
                    && topk == other.topk
                    && experts == other.experts
                    && (sms == null || sms.equals(other.sms));
        }
    }

    /** A line of the table. */
    private record Pair(Figure ours, Figure theirs) {
        double ratio() {
            return ours.micros / theirs.micros;
        }
    }

    /**
     * Reads a file: an array of {@link Figure} objects, each field by its name.
     *
     * @throws UsageException if it is nothing of the kind
     */
    public static PeerFigures read(Path file) {
        Figure[] figures;
        try {
            figures = JSON.readValue(file.toFile(), Figure[].class);
        } catch (JsonProcessingException malformed) {
            throw new UsageException(
                    "--peer=" + file + " has no figures: " + malformed.getOriginalMessage());
        } catch (IOException unreadable) {
            throw new UsageException("cannot read --peer=" + file + ": " + unreadable.getMessage());
        }
        for (int i = 0; figures != null && i < figures.length; i++) {
            if (figures[i] == null || !figures[i].isWhole()) {
                throw new UsageException(
                        ("--peer=%s: figure %d lacks a value; each needs library, op, dtype, and positive ranks,"
                                        + " nodes, tokens, hidden, topk, experts and micros; sms is"
                                        + " optional")
                                .formatted(file, i + 1));
            }
        }
        if (figures == null || figures.length == 0) {
            throw new UsageException("--peer=" + file + " has no figures: it is empty");
        }
        return new PeerFigures(file, List.of(figures));
    }

    /**
     * Prints each figure beside ours of the same work. Of several that differ in multiprocessors
     * alone, where the peer does not say how many, our fastest.
     */
    public void print(Console console, List<Figure> ours) {
        List<Pair> pairs = new ArrayList<>();
        for (Figure theirs : figures) {
            ours.stream()
                    .filter(theirs::matches)
                    .min(Comparator.comparingDouble(Figure::micros))
                    .ifPresent(best -> pairs.add(new Pair(best, theirs)));
        }
        console.line(
                "%d of %d figures of %s are about operations, ranks, tokens and experts measured here",
                pairs.size(), figures.size(), file.getFileName());
        if (pairs.isEmpty()) {
            return;
        }
        console.print(
                new TextTable<Pair>()
                        .text("operation", pair -> pair.ours.op)
                        .text("dtype", pair -> pair.ours.dtype)
                        .number("tokens", "%.0f", pair -> pair.ours.tokens)
                        .number("sms", "%.0f", pair -> pair.ours.sms)
                        .number("ours us", "%.1f", pair -> pair.ours.micros)
                        .text("library", pair -> pair.theirs.library)
                        .number("theirs us", "%.1f", pair -> pair.theirs.micros)
                        .number("ours / theirs", "%.2f", Pair::ratio)
                        .of(pairs));
    }
}
