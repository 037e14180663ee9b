import { findOrInstall } from './programs.ts'
import { collectNotes } from './run-notes.ts'

/** Runs once per test run, before any worker, so that the workers find the binary and none installs in parallel. */
export default function setup(): () => void {
  process.env.REDIS_SERVER_BIN = findOrInstall('redis')
  return collectNotes()
}
