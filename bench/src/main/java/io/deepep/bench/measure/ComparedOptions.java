package io.deepep.bench.measure;

import io.deepep.bench.run.Console;
import java.nio.file.Path;
import java.util.List;
import picocli.CommandLine.Option;

/** {@link BenchOptions} of a command whose figures other libraries have too. */
public class ComparedOptions extends BenchOptions {
    @Option(
            names = "--peer",
            paramLabel = "FILE",
            description =
                    "Also prints the figures of another library next to these (JSON; see"
                            + " docs/guides/single-node.md).")
    private Path peer;

    private PeerFigures peers;

    @Override
    public final void validate() {
        super.validate();
        peers = peer == null ? null : PeerFigures.read(peer);
    }

    /** Prints another library's figures beside {@code ours}, where that is asked for. */
    public final void compare(Console console, List<PeerFigures.Figure> ours) {
        if (peers != null) {
            peers.print(console, ours);
        }
    }
}
