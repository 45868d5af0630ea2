package io.deepep.bench.docs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.commonmark.ext.heading.anchor.IdGenerator;
import org.commonmark.node.AbstractVisitor;
import org.commonmark.node.Code;
import org.commonmark.node.FencedCodeBlock;
import org.commonmark.node.Heading;
import org.commonmark.node.Image;
import org.commonmark.node.Link;
import org.commonmark.node.Node;
import org.commonmark.node.Text;
import org.commonmark.parser.Parser;

/** What a page of the documentation holds that a test can check. */
record MarkdownPage(Path path, List<String> links, Set<String> anchors, List<Block> blocks) {
    /** A fenced code block and its language, empty if it names none. */
    record Block(String language, String text) {}

    @Override
    public String toString() {
        return path.toString();
    }

    /** All pages of the repository. */
    static List<MarkdownPage> all() {
        return Checkout.FILES.stream()
                .filter(file -> file.toString().endsWith(".md"))
                .map(MarkdownPage::read)
                .toList();
    }

    private static MarkdownPage read(Path path) {
        MarkdownPage page =
                new MarkdownPage(path, new ArrayList<>(), new HashSet<>(), new ArrayList<>());
        try {
            Node document = Parser.builder().build().parse(Files.readString(path));
            document.accept(page.new Collector());
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
        return page;
    }

    private final class Collector extends AbstractVisitor {
        private final IdGenerator ids = IdGenerator.builder().build();

        @Override
        public void visit(Link link) {
            links.add(link.getDestination());
            visitChildren(link);
        }

        @Override
        public void visit(Image image) {
            links.add(image.getDestination());
        }

        @Override
        public void visit(Heading heading) {
            StringBuilder title = new StringBuilder();
            heading.accept(
                    new AbstractVisitor() {
                        @Override
                        public void visit(Text text) {
                            title.append(text.getLiteral());
                        }

                        @Override
                        public void visit(Code code) {
                            title.append(code.getLiteral());
                        }
                    });
            anchors.add(ids.generateId(title.toString()));
        }

        @Override
        public void visit(FencedCodeBlock block) {
            blocks.add(new Block(block.getInfo().strip(), block.getLiteral()));
        }
    }
}
