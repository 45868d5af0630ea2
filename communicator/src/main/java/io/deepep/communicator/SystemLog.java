package io.deepep.communicator;

import java.lang.System.Logger.Level;
import java.util.Locale;
import org.jgroups.logging.CustomLogFactory;
import org.jgroups.logging.Log;
import org.jgroups.logging.LogFactory;

/**
 * JGroups' log lines as lines of {@link System.Logger}, which the application configures. What
 * JGroups warns of is thrown or shows in the membership too, so its warnings and errors are logged
 * at {@code DEBUG} and everything else at {@code TRACE}.
 */
final class SystemLog implements Log {
    private static final Level IMPORTANT = Level.DEBUG;
    private static final Level DETAIL = Level.TRACE;

    private final System.Logger logger;

    private SystemLog(String name) {
        logger = System.getLogger(name);
    }

    /** From now on, unless the application has given JGroups a log factory itself. */
    static void takeOver() {
        if (LogFactory.getCustomLogFactory() == null) {
            LogFactory.setCustomLogFactory(
                    new CustomLogFactory() {
                        @Override
                        public Log getLog(Class<?> type) {
                            return new SystemLog(type.getName());
                        }

                        @Override
                        public Log getLog(String category) {
                            return new SystemLog(category);
                        }
                    });
        }
    }

    @SuppressWarnings(
            "AnnotateFormatMethod") // the annotation would be a dependency for this one method
    private void log(Level level, String format, Object... values) {
        logger.log(level, () -> String.format(Locale.ROOT, format, values));
    }

    @Override
    public boolean isFatalEnabled() {
        return logger.isLoggable(IMPORTANT);
    }

    @Override
    public boolean isErrorEnabled() {
        return logger.isLoggable(IMPORTANT);
    }

    @Override
    public boolean isWarnEnabled() {
        return logger.isLoggable(IMPORTANT);
    }

    @Override
    public boolean isInfoEnabled() {
        return logger.isLoggable(DETAIL);
    }

    @Override
    public boolean isDebugEnabled() {
        return logger.isLoggable(DETAIL);
    }

    @Override
    public boolean isTraceEnabled() {
        return logger.isLoggable(DETAIL);
    }

    @Override
    public void fatal(String message) {
        logger.log(IMPORTANT, message);
    }

    @Override
    public void fatal(String format, Object... values) {
        log(IMPORTANT, format, values);
    }

    @Override
    public void fatal(String message, Throwable thrown) {
        logger.log(IMPORTANT, message, thrown);
    }

    @Override
    public void error(String message) {
        logger.log(IMPORTANT, message);
    }

    @Override
    public void error(String format, Object... values) {
        log(IMPORTANT, format, values);
    }

    @Override
    public void error(String message, Throwable thrown) {
        logger.log(IMPORTANT, message, thrown);
    }

    @Override
    public void warn(String message) {
        logger.log(IMPORTANT, message);
    }

    @Override
    public void warn(String format, Object... values) {
        log(IMPORTANT, format, values);
    }

    @Override
    public void warn(String message, Throwable thrown) {
        logger.log(IMPORTANT, message, thrown);
    }

    @Override
    public void info(String message) {
        logger.log(DETAIL, message);
    }

    @Override
    public void info(String format, Object... values) {
        log(DETAIL, format, values);
    }

    @Override
    public void debug(String message) {
        logger.log(DETAIL, message);
    }

    @Override
    public void debug(String format, Object... values) {
        log(DETAIL, format, values);
    }

    @Override
    public void debug(String message, Throwable thrown) {
        logger.log(DETAIL, message, thrown);
    }

    @Override
    public void trace(Object message) {
        logger.log(DETAIL, message);
    }

    @Override
    public void trace(String message) {
        logger.log(DETAIL, message);
    }

    @Override
    public void trace(String format, Object... values) {
        log(DETAIL, format, values);
    }

    @Override
    public void trace(String message, Throwable thrown) {
        logger.log(DETAIL, message, thrown);
    }

    /** The application sets levels. */
    @Override
    public void setLevel(String level) {}

    @Override
    public String getLevel() {
        return logger.isLoggable(DETAIL) ? "trace" : logger.isLoggable(IMPORTANT) ? "debug" : "off";
    }
}
