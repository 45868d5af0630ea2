import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.TreeMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Inspects jars of device code: {@code java DeviceCodeInspection.java X86_64.jar AARCH64.jar}.
 * Whatever lies in them is a fatbin, and every program in it is for GPUs, none for a host's
 * processor. So the same files serve beside each processor, and both jars hold the same.
 */
final class DeviceCodeInspection {
    /** The first word of NVIDIA's container, and of an ELF file, as they lie in the file. */
    private static final int FATBIN = 0xba55ed50;

    private static final int ELF = 0x464c457f;

    /** {@code e_machine}, and its value for CUDA. */
    private static final int MACHINE_AT = 18;

    private static final int CUDA = 190;

    private DeviceCodeInspection() {}

    public static void main(String[] jars) throws IOException {
        if (jars.length != 2) {
            throw new IllegalArgumentException("give two jars, not " + jars.length);
        }
        var first = deviceCode(jars[0]);
        var second = deviceCode(jars[1]);
        if (!first.keySet().equals(second.keySet())) {
            throw new IllegalStateException(
                    jars[0] + " holds " + first.keySet() + ", " + jars[1] + " " + second.keySet());
        }
        int programs = 0;
        for (var each : first.entrySet()) {
            if (!each.getValue().equals(second.get(each.getKey()))) {
                throw new IllegalStateException(each.getKey() + " differs between both jars");
            }
            programs += programs(each.getKey(), each.getValue());
        }
        System.out.println(
                first.size() + " fatbins hold " + programs + " programs, all for GPUs, the same in both jars");
    }

    /** All files but those of the jar itself. */
    private static TreeMap<String, ByteBuffer> deviceCode(String jar) throws IOException {
        var files = new TreeMap<String, ByteBuffer>();
        try (ZipFile zip = new ZipFile(jar)) {
            for (ZipEntry entry : zip.stream().filter(each -> !each.isDirectory()).toList()) {
                if (!entry.getName().startsWith("META-INF/")) {
                    try (InputStream in = zip.getInputStream(entry)) {
                        files.put(entry.getName(), ByteBuffer.wrap(in.readAllBytes()));
                    }
                }
            }
        }
        if (files.isEmpty()) {
            throw new IllegalStateException(jar + " holds no device code");
        }
        return files;
    }

    /** How many programs are in a fatbin. */
    private static int programs(String name, ByteBuffer bytes) {
        ByteBuffer file = bytes.order(ByteOrder.LITTLE_ENDIAN);
        if (file.remaining() < Integer.BYTES || file.getInt(0) != FATBIN) {
            throw new IllegalStateException(name + " is no fatbin");
        }
        int programs = 0;
        // Headers in a fatbin are aligned to 8 bytes, and so is each program.
        for (int at = 0; at + MACHINE_AT + Short.BYTES <= file.limit(); at += Long.BYTES) {
            if (file.getInt(at) == ELF) {
                int machine = Short.toUnsignedInt(file.getShort(at + MACHINE_AT));
                if (machine != CUDA) {
                    throw new IllegalStateException(
                            name + " holds a program for machine " + machine + ", not " + CUDA + " (CUDA)");
                }
                programs++;
            }
        }
        if (programs == 0) {
            throw new IllegalStateException(name + " holds no program");
        }
        return programs;
    }
}
