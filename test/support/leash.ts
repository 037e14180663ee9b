import { type ChildProcess, spawn } from 'node:child_process'

/**
 * Ties a server to this process: a shell waits for the end of a pipe that only this process holds open, so that even
 * a worker that is killed leaves no server behind. It leads a group of its own, because Ctrl-C must not end it first.
 * @returns what lets the server go, to be called when it has ended
 */
export function leash(child: ChildProcess, folder: string): () => void {
  if (child.pid === undefined) return () => undefined
  const script = 'cat >/dev/null; kill -9 "$1" 2>/dev/null; rm -rf "$2"'
  const shell = spawn('/bin/sh', ['-c', script, 'leash', `${child.pid}`, folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  unrefAll(shell)
  return () => void (shell.pid !== undefined && killGroup(shell.pid))
}

/** The shell waits in `cat`, which is in its group and would otherwise stay until this process ends. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has gone already, which is what was wanted.
  }
}

/** A server that a test forgot to stop must not keep its process from ending. */
export function unrefAll(child: ChildProcess): void {
  child.unref()
  for (const stream of child.stdio) {
    if (stream && 'unref' in stream && typeof stream.unref === 'function') stream.unref()
  }
}
