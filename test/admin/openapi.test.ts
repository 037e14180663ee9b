import { openApiDocument } from '@sluice/admin'
import { describe, expect, it } from 'vitest'
import { root } from '../support/workspace.ts'
import { operations } from './operations.ts'

type Described = Record<'operationId' | 'x-role', string>

const text = JSON.stringify(openApiDocument(), null, 2)
const document: { paths: Record<string, Record<string, Described>> } = JSON.parse(text)

describe('openapi.json', () => {
  it('is written from the table of operations', async () => {
    await expect(`${text}\n`).toMatchFileSnapshot(`${root}packages/admin/openapi.json`)
  })

  it('lists each operation that the tests know, under its path and with its role', () => {
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId, 'x-role': role }]) => {
        return [operationId, `${method} ${path} ${role}`]
      }),
    )
    const known = Object.entries(operations).map(([name, { method, path, role }]) => {
      const [plain = ''] = path.split('?')
      return [name, `${method.toLowerCase()} /${plain.replace('/jobs/', '/{queue}/')} ${role}`]
    })
    expect(Object.fromEntries(described)).toEqual(Object.fromEntries(known))
  })
})
