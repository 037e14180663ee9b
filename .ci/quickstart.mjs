// Starts the quickstart as the README says and asks it what a newcomer would: five requests pass on each server, and
// the sixth is refused.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const START_TIMEOUT_MS = 30_000
const LIMIT = 5

const port = await freePair()
const { REDIS_URL: _, ...env } = process.env
const quickstart = spawn('npm', ['start'], {
  env: { ...env, PORT: String(port) },
  stdio: ['ignore', 'inherit', 'inherit'],
  // A group of its own, so that ending it ends npm, its shell and the server.
  detached: true,
})
const ended = once(quickstart, 'exit')
try {
  await Promise.race([
    Promise.all([untilItListens(port), untilItListens(port + 1)]),
    ended.then(([code]) => Promise.reject(new Error(`npm start ended with ${code}`))),
  ])
  await proveLimit('Express', port)
  await proveLimit('Fastify', port + 1)
} finally {
  endGroup(quickstart.pid)
  await ended
}

async function proveLimit(name, serverPort) {
  const statuses = []
  let refused
  for (let request = 1; request <= LIMIT + 1; request++) {
    refused = await fetch(`http://127.0.0.1:${serverPort}/`)
    await refused.text()
    statuses.push(refused.status)
  }
  assert.deepEqual(statuses, [...Array(LIMIT).fill(200), 429], name)
  assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/, name)
  console.log(`${name} on port ${serverPort}: ${statuses.join(' ')}`)
}

/** Connects without asking anything, because a request would be counted. */
async function untilItListens(serverPort) {
  const deadline = Date.now() + START_TIMEOUT_MS
  while (!(await accepts(serverPort))) {
    if (Date.now() > deadline) throw new Error(`Nothing listens on port ${serverPort}`)
    await sleep(100)
  }
}

function accepts(serverPort) {
  return new Promise((resolve) => {
    const socket = connect(serverPort, '127.0.0.1')
    const settle = (answer) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => settle(true)).once('error', () => settle(false))
  })
}

/** Two adjacent ports that are free on every address, as the quickstart needs them. */
async function freePair() {
  for (let attempt = 1; attempt <= 20; attempt++) {
    const first = await listen(0)
    const candidate = first.address().port
    const second = await listen(candidate + 1).catch(() => undefined)
    await Promise.all([close(first), second && close(second)])
    if (second !== undefined) return candidate
  }
  throw new Error('No two adjacent ports are free')
}

async function listen(wanted) {
  const server = createServer().listen(wanted)
  await once(server, 'listening')
  return server
}

async function close(server) {
  server.close()
  await once(server, 'close')
}

function endGroup(pid) {
  try {
    process.kill(-pid, 'SIGTERM')
  } catch (error) {
    // It has ended already, which the steps before have reported if it was too early.
    if (error.code !== 'ESRCH') throw error
  }
}
