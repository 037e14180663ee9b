import { fieldLines, type HttpResponse, type ResponseField } from '../adapter/response.ts'

/** `Vary` with `Prefer` in it, beside what others have put there (RFC 7240 §2). */
export function varyOnPrefer(response: HttpResponse): ResponseField {
  const names = fieldLines(response, 'Vary')
    .join(',')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const isThere = names.some((name) => name === '*' || name.toLowerCase() === 'prefer')
  return ['Vary', (isThere ? names : [...names, 'Prefer']).join(', ')]
}
