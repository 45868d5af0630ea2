package io.deepep;

/** An event that is always done. */
enum CompletedEvent implements Event {
    INSTANCE;

    @Override
    public boolean isDone() {
        return true;
    }

    @Override
    public void synchronize() {}
}
