-- True, or the whole statement is undone and may be tried another way (serialization_failure).
create function or_conflict(holds boolean) returns boolean
language plpgsql volatile
as $$
begin
  if not holds then
    raise exception 'a statement met what another wrote' using errcode = '40001';
  end if;
  return true;
end
$$;
