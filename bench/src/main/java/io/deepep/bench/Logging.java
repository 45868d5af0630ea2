package io.deepep.bench;

import java.util.logging.Level;
import java.util.logging.Logger;

/** What the library logs through {@link System.Logger} when it runs under this command. */
final class Logging {
    private static final String FORMAT_PROPERTY = "java.util.logging.SimpleFormatter.format";
    private static final Logger ROOT = Logger.getLogger("");

    private Logging() {}

    /** One line per message, and only warnings, unless the user configured logging. */
    static void quiet() {
        if (System.getProperty("java.util.logging.config.file") != null) {
            return;
        }
        if (System.getProperty(FORMAT_PROPERTY) == null) {
            System.setProperty(FORMAT_PROPERTY, "%4$s %5$s%6$s%n");
        }
        ROOT.setLevel(Level.WARNING);
    }
}
