import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { findOrInstall } from './programs.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** A port that speaks TLS, and passes what it reads to a port that does not. */
export async function tlsFront(target: number) {
  const { key, cert } = certificate()
  const server = createServer({ key, cert }, (outside) => {
    const inside = connect(target, '127.0.0.1')
    outside.pipe(inside).pipe(outside)
    outside.on('error', () => inside.destroy())
    inside.on('error', () => outside.destroy())
  })
  // A client that does not trust the certificate leaves.
  server.on('tlsClientError', () => undefined)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return { port, ca: cert, [Symbol.asyncDispose]: async () => void server.close() }
}

function certificate(): { readonly key: string; readonly cert: string } {
  using folder = temporaryFolder('tls')
  const [key, cert] = [join(folder.path, 'key.pem'), join(folder.path, 'cert.pem')]
  const { status, stderr } = spawnSync(
    findOrInstall('openssl'),
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=localhost'],
      ...['-addext', 'subjectAltName=DNS:localhost'],
    ],
    { encoding: 'utf8', timeout: 30_000 },
  )
  if (status !== 0) throw new Error(`openssl made no certificate: ${stderr}`)
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
}
