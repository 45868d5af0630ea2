package io.deepep.buffer.parity;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Where vector files are found. */
final class VectorFiles {
    /** The system property that names a folder with more files, such as those of DeepEP. */
    static final String FOLDER_PROPERTY = "deepep.parityVectors";

    private static final String SUFFIX = ".safetensors";

    private VectorFiles() {}

    /** The committed files of a writer, {@code pytorch} or {@code java}, in their order. */
    static List<String> golden(String writer) throws IOException {
        return new String(bytes(writer + "/index.txt"), StandardCharsets.UTF_8).lines().toList();
    }

    /** A committed file. */
    static byte[] bytes(String path) throws IOException {
        try (InputStream resource = VectorFiles.class.getResourceAsStream("golden/" + path)) {
            if (resource == null) {
                throw new IOException("python-parity/golden/" + path + " is not on the class path");
            }
            return resource.readAllBytes();
        }
    }

    /** The files of the folder that the property names; none without it. */
    static List<Path> given() throws IOException {
        String folder = System.getProperty(FOLDER_PROPERTY);
        if (folder == null) {
            return List.of();
        }
        try (Stream<Path> files = Files.list(Path.of(folder))) {
            List<Path> found =
                    files.filter(file -> file.toString().endsWith(SUFFIX)).sorted().toList();
            if (found.isEmpty()) {
                throw new IOException(
                        FOLDER_PROPERTY + "=" + folder + " has no file that ends in " + SUFFIX);
            }
            return found;
        }
    }
}
