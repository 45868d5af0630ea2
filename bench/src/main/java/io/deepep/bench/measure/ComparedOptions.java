package io.deepep.bench.measure;

import java.nio.file.Path;
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

    /** Another library's figures, or null. */
    public final PeerFigures peers() {
        return peers;
    }
}
