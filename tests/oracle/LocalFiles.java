// The local file system of Hadoop without its processes: without its native library, which PySpark
// does not bring, it starts a chmod for each file that it makes and an ls for each permission that
// it looks up. Compiled by the Janino of Spark when `worker.py` starts.

import java.io.File;
import java.io.FileNotFoundException;
import java.io.FilterInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PositionedReadable;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.Seekable;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends LocalFileSystem {
    static final int MAX_BUFFER = 4096;

    public LocalFiles() {
        super(new RawLocalFiles());
    }

    public FSDataInputStream open(Path path, int bufferSize) throws IOException {
        return new FSDataInputStream(
            new Unbuffered(super.open(path, Math.min(bufferSize, MAX_BUFFER))));
    }

    // No FSInputStream, because Hudi puts a buffer of its own around one; and no FSDataInputStream,
    // because Parquet would take it for one that reads into buffers outside of the heap.
    public static class Unbuffered extends FilterInputStream
        implements Seekable, PositionedReadable {
        private final FSDataInputStream file;

        Unbuffered(FSDataInputStream file) {
            super(file);
            this.file = file;
        }

        public void seek(long position) throws IOException {
            this.file.seek(position);
        }

        public long getPos() throws IOException {
            return this.file.getPos();
        }

        public boolean seekToNewSource(long position) throws IOException {
            return this.file.seekToNewSource(position);
        }

        public int read(long position, byte[] buffer, int at, int length) throws IOException {
            return this.file.read(position, buffer, at, length);
        }

        public void readFully(long position, byte[] buffer, int at, int length)
            throws IOException {
            this.file.readFully(position, buffer, at, length);
        }

        public void readFully(long position, byte[] buffer) throws IOException {
            this.file.readFully(position, buffer);
        }
    }

    public static class RawLocalFiles extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            String text = permission.getUserAction().SYMBOL
                + permission.getGroupAction().SYMBOL + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(
                this.pathToFile(path).toPath(), PosixFilePermissions.fromString(text));
        }

        public FileStatus getFileStatus(Path path) throws IOException {
            return this.withPermission(super.getFileStatus(path));
        }

        public FileStatus[] listStatus(Path path) throws IOException {
            FileStatus[] listed = super.listStatus(path);
            int count = 0;
            for (int at = 0; at < listed.length; at++) {
                try {
                    listed[count] = this.withPermission(listed[at]);
                    count++;
                } catch (FileNotFoundException deleted) {
                    // by another program, since it was listed; Hadoop skips such files too
                }
            }
            return (FileStatus[]) Arrays.copyOf(listed, count);
        }

        private FileStatus withPermission(FileStatus found) throws IOException {
            PosixFileAttributes about;
            try {
                about = (PosixFileAttributes) Files.readAttributes(
                    this.pathToFile(found.getPath()).toPath(), PosixFileAttributes.class,
                    new LinkOption[0]);
            } catch (NoSuchFileException deleted) {
                throw new FileNotFoundException("File " + found.getPath() + " does not exist");
            }
            return new FileStatus(
                found.getLen(), found.isDirectory(), found.getReplication(), found.getBlockSize(),
                found.getModificationTime(), found.getAccessTime(),
                FsPermission.valueOf("-" + PosixFilePermissions.toString(about.permissions())),
                about.owner().getName(), about.group().getName(), found.getPath());
        }
    }
}
