package io.deepep.djl;

import ai.djl.MalformedModelException;
import ai.djl.ndarray.NDManager;
import ai.djl.nn.Block;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.List;

/**
 * Experts in a DJL parameter file: how many there are in the model, the first and the number of
 * those that follow, then each as its length and DJL's bytes, so that others can be skipped.
 */
final class ExpertRecords {
    private ExpertRecords() {}

    static void save(List<Block> experts, int first, int numExperts, DataOutputStream out)
            throws IOException {
        out.writeInt(numExperts);
        out.writeInt(first);
        out.writeInt(experts.size());
        for (Block expert : experts) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            expert.saveParameters(new DataOutputStream(bytes));
            out.writeInt(bytes.size());
            bytes.writeTo(out);
        }
    }

    static void load(
            List<Block> experts, int first, int numExperts, NDManager manager, DataInputStream in)
            throws IOException, MalformedModelException {
        int savedExperts = in.readInt();
        if (savedExperts != numExperts) {
            throw new MalformedModelException(
                    "the model was saved with numExperts=%s, but this layer has numExperts=%s"
                            .formatted(savedExperts, numExperts));
        }
        int savedFirst = in.readInt();
        int savedEnd = savedFirst + in.readInt();
        if (first < savedFirst || first + experts.size() > savedEnd) {
            throw new MalformedModelException(
                    ("experts %s to %s of this rank are not among %s to %s in the file; save the model"
                                    + " unpartitioned, or load it with the ranks it was saved with")
                            .formatted(
                                    first, first + experts.size() - 1, savedFirst, savedEnd - 1));
        }
        for (int e = savedFirst; e < savedEnd; e++) {
            int numBytes = in.readInt();
            if (e >= first && e < first + experts.size()) {
                byte[] bytes = in.readNBytes(numBytes);
                experts.get(e - first)
                        .loadParameters(
                                manager, new DataInputStream(new ByteArrayInputStream(bytes)));
            } else {
                in.skipNBytes(numBytes);
            }
        }
    }
}
