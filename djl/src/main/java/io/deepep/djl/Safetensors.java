package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.zip.Checksum;

/**
 * The tensors of a {@code .safetensors} file, or of a folder with one {@code model.safetensors} or,
 * if it has none, with {@code model.safetensors.index.json}. Files are mapped when they are first
 * read from, so that a rank that loads only its own experts touches no other pages. Not
 * thread-safe.
 */
public final class Safetensors implements AutoCloseable {
    private static final String INDEX = "model.safetensors.index.json";
    private static final String SINGLE = "model.safetensors";

    private final Path where;
    private final Map<String, Path> fileOf;
    private final Map<Path, SafetensorsFile> open = new HashMap<>();

    private Safetensors(Path where, Map<String, Path> fileOf) {
        this.where = where;
        this.fileOf = fileOf;
    }

    /**
     * Reads the index of a folder, or the header of a file.
     *
     * @throws IOException if it is missing or not well formed
     */
    public static Safetensors open(Path fileOrFolder) throws IOException {
        Path file = Files.isDirectory(fileOrFolder) ? fileOrFolder.resolve(SINGLE) : fileOrFolder;
        Path index = fileOrFolder.resolve(INDEX);
        // As transformers, which leaves the index of an earlier save beside a single file.
        if (!Files.isRegularFile(file) && Files.isRegularFile(index)) {
            return new Safetensors(fileOrFolder, readIndex(index));
        }
        if (!Files.isRegularFile(file)) {
            throw new IOException(
                    "%s is not a .safetensors file, nor a folder with %s or %s"
                            .formatted(fileOrFolder, INDEX, SINGLE));
        }
        SafetensorsFile only = SafetensorsFile.open(file);
        Map<String, Path> fileOf =
                only.entries().keySet().stream().collect(Collectors.toMap(name -> name, _ -> file));
        Safetensors tensors = new Safetensors(fileOrFolder, fileOf);
        tensors.open.put(file, only);
        return tensors;
    }

    private static Map<String, Path> readIndex(Path index) throws IOException {
        try {
            JsonObject map =
                    JsonParser.parseString(Files.readString(index))
                            .getAsJsonObject()
                            .getAsJsonObject("weight_map");
            if (map == null) {
                throw new IOException(index + " has no weight_map");
            }
            Map<String, Path> fileOf = new LinkedHashMap<>();
            map.asMap()
                    .forEach(
                            (name, file) ->
                                    fileOf.put(name, index.resolveSibling(file.getAsString())));
            return fileOf;
        } catch (RuntimeException | CharacterCodingException wrong) { // as in a file's header
            throw new IOException(index + " is not an index of safetensors: " + wrong, wrong);
        }
    }

    /** The names of all tensors, whether their files are mapped or not. */
    public Set<String> names() {
        return Collections.unmodifiableSet(fileOf.keySet());
    }

    /**
     * An array over the mapped file. It is read-only: writing to it crashes the process. Valid
     * until this object is closed; {@link TorchTensors#cast} copies it. FP8 weights have scales,
     * see {@link Weights}.
     *
     * @throws IllegalArgumentException if there is no such tensor, or its type is not one of
     *     weights
     */
    public NDArray view(NDManager manager, String name) throws IOException {
        return fileWith(name).view(manager, name);
    }

    /**
     * Adds the first bytes of each tensor whose name begins with {@code prefix}, which other
     * training changes, to a checksum.
     *
     * @return whether there is any
     */
    public boolean sample(String prefix, Checksum sum) throws IOException {
        List<String> names =
                fileOf.keySet().stream().filter(each -> each.startsWith(prefix)).sorted().toList();
        for (String name : names) {
            sum.update(fileWith(name).beginningOf(name));
        }
        return !names.isEmpty();
    }

    private SafetensorsFile fileWith(String name) throws IOException {
        Path path = fileOf.get(name);
        if (path == null) {
            throw new IllegalArgumentException(
                    "%s has no tensor %s; it has %s tensors%s"
                            .formatted(where, name, fileOf.size(), similar(name)));
        }
        SafetensorsFile file = open.get(path);
        if (file == null) {
            if (!Files.isRegularFile(path)) {
                throw new IOException(
                        "%s is missing, in which %s has %s; complete the folder"
                                .formatted(path, where.resolve(INDEX), name));
            }
            file = SafetensorsFile.open(path);
            open.put(path, file);
        }
        return file;
    }

    /** Where mapped bytes lie. */
    record Place(Path file, long offset) {}

    /** Where bytes of a {@linkplain #view view} lie, or null if they are of no file. */
    Place placeOf(MemorySegment bytes) {
        for (Map.Entry<Path, SafetensorsFile> file : open.entrySet()) {
            long offset = file.getValue().offsetOf(bytes);
            if (offset >= 0) {
                return new Place(file.getKey(), offset);
            }
        }
        return null;
    }

    /** Number of files that have been mapped. */
    int numOpenFiles() {
        return open.size();
    }

    /** Names with the same end: the usual mistake is the prefix. */
    private String similar(String name) {
        String end = name.substring(name.lastIndexOf('.', name.lastIndexOf('.') - 1) + 1);
        List<String> alike =
                fileOf.keySet().stream()
                        .filter(other -> other.endsWith(end))
                        .sorted()
                        .limit(3)
                        .toList();
        return alike.isEmpty() ? "" : ", among them ending alike: " + String.join(", ", alike);
    }

    /** Unmaps the files. Arrays over them must not be used any more. Idempotent. */
    @Override
    public void close() {
        open.values().forEach(SafetensorsFile::close);
        open.clear();
    }
}
