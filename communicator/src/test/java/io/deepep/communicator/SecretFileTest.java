package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SecretFileTest {
    @TempDir private Path folder;

    static Path write(Path file, String content, String permissions) throws IOException {
        Files.writeString(file, content);
        return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(permissions));
    }

    private static void assertRefused(Path file, String... words) {
        assertThatThrownBy(() -> SecretFile.read("DEEPEP_SECRET_FILE=" + file, file.toString()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("DEEPEP_SECRET_FILE=" + file)
                .hasMessageContainingAll(words);
    }

    @Test
    void readsWhatOnlyItsOwnerReads() throws IOException {
        Path file = write(folder.resolve("secret"), "  words of the secret\n", "r--------");
        assertThat(SecretFile.read("it", file.toString())).isEqualTo("words of the secret");
    }

    @Test
    void knowsItsUserWithoutATemporaryFile() throws IOException {
        Path nowhere = folder.resolve("absent");
        int user = SecretFile.user(nowhere, folder);
        assertThat(user).isEqualTo(Files.getAttribute(folder, "unix:uid"));
        assertThat(SecretFile.user(Path.of("/proc/self"), nowhere)).isEqualTo(user);
        assertThat(folder).isEmptyDirectory();
        assertThatThrownBy(() -> SecretFile.user(nowhere, nowhere))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContainingAll("user id of this process", nowhere.toString(), "tmpdir");
    }

    @Test
    void refusesWhatOthersCanReadOrChange() throws IOException {
        Path file = folder.resolve("secret");
        for (String open : List.of("rw-r-----", "rw--w----", "rw----r--", "rw-----w-")) {
            write(file, "words of the secret", open);
            assertRefused(file, "has the permissions " + open, "chmod 600 it");
        }
    }

    @Test
    void refusesWhatAnotherUserOwns() throws IOException {
        Assumptions.assumeTrue(
                Files.getAttribute(folder, "unix:uid").equals(0),
                "only root can give a file to another user");
        Path file = write(folder.resolve("secret"), "a secret", "rw-------");
        Files.setAttribute(file, "unix:uid", 12345);
        assertRefused(file, "belongs to user 12345, not to user 0");
    }

    @Test
    void refusesLinksFoldersAndEmptyFiles() throws IOException {
        Path file = write(folder.resolve("secret"), "words of the secret", "rw-------");
        assertRefused(
                Files.createSymbolicLink(folder.resolve("link"), file), "is a link, not a file");
        assertRefused(folder, "is of another kind, not a file");
        assertRefused(folder.resolve("absent"), "cannot be read", "openssl rand -hex 32");
        write(file, " \n", "rw-------");
        assertRefused(file, "is empty", "openssl rand -hex 32");
    }

    @Test
    void allProcessesOfAUserTakeTheSame() throws Exception {
        List<String> secrets = Groups.each(8, rank -> SecretFile.ofThisUser(folder));
        assertThat(secrets.getFirst()).matches("[0-9a-f]{64}");
        assertThat(secrets).allMatch(secrets.getFirst()::equals);
        try (var left = Files.list(folder)) {
            Path own = left.reduce((one, other) -> null).orElseThrow();
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(own)))
                    .isEqualTo("rwx------");
            Path file = own.resolve("secret");
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
                    .isEqualTo("rw-------");
        }
    }

    @Test
    void aPlaceThatOthersCanEnterIsNotTaken() throws Exception {
        SecretFile.ofThisUser(folder);
        Path own;
        try (var made = Files.list(folder)) {
            own = made.findFirst().orElseThrow();
        }
        Files.setPosixFilePermissions(own, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertThatThrownBy(() -> SecretFile.ofThisUser(folder))
                .hasMessageContainingAll(own.toString(), "rwxrwxrwx", "chmod 700");
        Path elsewhere = Files.createDirectory(folder.resolve("elsewhere"));
        Files.move(own, elsewhere.resolve("own"));
        Files.createSymbolicLink(own, elsewhere.resolve("own"));
        assertThatThrownBy(() -> SecretFile.ofThisUser(folder))
                .hasMessageContainingAll(own.toString(), "is a link, not a folder");
        Files.delete(own);
        write(own, "words of the secret", "rw-------");
        assertThatThrownBy(() -> SecretFile.ofThisUser(folder))
                .hasMessageContainingAll(own.toString(), "is of another kind, not a folder");
    }

    @Test
    void nobodyGuessesIt(@TempDir Path elsewhere) {
        assertThat(SecretFile.ofThisUser(folder)).isNotEqualTo(SecretFile.ofThisUser(elsewhere));
    }
}
