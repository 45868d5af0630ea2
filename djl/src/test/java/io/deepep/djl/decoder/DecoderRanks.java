package io.deepep.djl.decoder;

import ai.djl.Device;
import io.deepep.Communicator;
import io.deepep.InProcessGroup;
import io.deepep.djl.TorchDevices;
import java.nio.file.Path;

/** Ranks of this process, with a decoder each. */
final class DecoderRanks {
    private DecoderRanks() {}

    /** What a rank does with its decoder. */
    interface Body {
        void run(Decoder decoder, Communicator communicator) throws Exception;
    }

    /** Opens a model on some ranks, does something on each, and closes it. */
    static void run(Path folder, int numRanks, DecoderOptions options, Body body)
            throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(numRanks)) {
            group.run(
                    communicator -> {
                        Device device = TorchDevices.ofRank(communicator.rank());
                        try (Decoder decoder =
                                Decoder.open(folder, communicator, device, options)) {
                            body.run(decoder, communicator);
                        }
                    });
        }
    }
}
